"""What mkdocs does beyond plain Markdown: pages from docstrings and from the root, and formulas without a script.

- Every section of ``api.md`` gets a page ``api/<module>.md`` with the docstrings of the names it lists, and the list
  itself links to them. So a name is written down once.
- CONTRIBUTING.md, CHANGELOG.md, SECURITY.md and THIRD_PARTY_NOTICES.md of the root are pages of the site too.
- ``$…$`` and ``$$…$$`` become MathML when the site is built. Browsers draw that by themselves, offline.
- Formulas that may scroll can be reached by the keyboard, and the search has a name for those who hear the page.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "THIRD_PARTY_NOTICES.md": "third-party-notices.md",
}
MODULE = re.compile(r"^## `([\w.]+)`$", re.MULTILINE)
NAME = re.compile(r"^- `([\w.]+)`: ", re.MULTILINE)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def sections(api: str) -> dict[str, str]:
    """The text of each section of api.md by the name of its module."""
    parts = MODULE.split(api)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def documented(module: str, section: str, modules: set[str]) -> list[str]:
    """The names of a section that have a docstring of their own; modules have a page, dunder names have none."""
    names = NAME.findall(section)
    return [name for name in names if not name.startswith("__") and f"{module}.{name}" not in modules]


def reference(module: str, names: list[str]) -> str:
    """The page of a module: a directive of mkdocstrings for each name."""
    return f"# {module}\n\n" + "\n".join(f"::: {module}.{name}\n" for name in names)


def linked(api: str) -> str:
    """api.md with a link from every name to its docstring, and from every module to its page."""
    found = sections(api)
    text = MODULE.split(api)[0]
    for module, section in found.items():
        own = set(documented(module, section, set(found)))
        lines = NAME.sub(lambda m, own=own, module=module: _link(module, m, own), section)
        text += f"## `{module}`\n\n[All docstrings](api/{module}.md)\n{lines}"
    return text


def _link(module: str, match: re.Match[str], own: set[str]) -> str:
    return f"- [`{match[1]}`][{module}.{match[1]}]: " if match[1] in own else match[0]


def to_mathml(page: str) -> str:
    """The page with its formulas as MathML."""
    return FORMULA.sub(_formula, page)


def _formula(match: re.Match[str]) -> str:
    formula = html.unescape(match[3]).strip().replace(r"\arg\max", r"\operatorname{argmax}")  # which is not known there
    return str(convert(formula, display="inline" if match[2] == "(" else "block"))


def on_config(config: Any) -> Any:
    """Add the pages of the modules to the navigation."""
    modules = sections((Path(config["docs_dir"]) / "api.md").read_text(encoding="utf-8"))
    part = next(entry["API"] for entry in config["nav"] if "API" in entry)
    part += [{module: f"api/{module}.md"} for module in modules]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are no file of docs/."""
    docs = Path(config["docs_dir"])
    found = sections((docs / "api.md").read_text(encoding="utf-8"))
    for module, section in found.items():
        names = documented(module, section, set(found))
        files.append(File.generated(config, f"api/{module}.md", content=reference(module, names)))
    for source, target in ROOT_PAGES.items():
        text = (docs.parent / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make links to files of the root links to their pages, and the list of names a list of links."""
    for source, target in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{source}", rf"](\g<1>{target}", markdown)
    return linked(markdown) if page.file.src_uri == "api.md" else markdown


def reachable(page: str) -> str:
    """The page with formulas that the keyboard can reach, since they may be wider than it; the theme does code."""
    return re.sub(r'(<math [^>]*display="block")', r'\1 tabindex="0"', page)


def breakable(page: str) -> str:
    """The page with names in tables that may be broken behind a point or an underscore, and nowhere else."""
    return re.sub(
        r"<td>.*?</td>", lambda cell: re.sub(r"<code>.*?</code>", _with_breaks, cell[0]), page, flags=re.DOTALL
    )


def _with_breaks(code: re.Match[str]) -> str:
    return re.sub(r"(?<=\w)([._])(?=[^\W\d])", r"\1<wbr>", code[0])


def on_page_content(html: str, **_: Any) -> str:
    """Draw the formulas."""
    return breakable(reachable(to_mathml(html)))


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
