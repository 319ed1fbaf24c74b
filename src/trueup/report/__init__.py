"""A page to show: an evaluation as data, and that data as HTML, Markdown or JSON."""

from trueup.report.html import render_html
from trueup.report.markdown import render_markdown
from trueup.report.saving import render_json, save_report
from trueup.report.summary import build_report

__all__ = ["build_report", "render_html", "render_json", "render_markdown", "save_report"]
