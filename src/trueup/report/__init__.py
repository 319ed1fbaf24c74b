"""A page to show: an evaluation as data, and that data as HTML, Markdown or JSON."""

from trueup.report.saving import (
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_summary,
    save_junit,
    save_report,
    save_summary,
)
from trueup.report.summary import build_report

__all__ = [
    "build_report",
    "render_html",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_summary",
    "save_junit",
    "save_report",
    "save_summary",
]
