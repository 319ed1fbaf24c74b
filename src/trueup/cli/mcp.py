"""trueup mcp: the tools of an assistant, over standard input and output."""

from __future__ import annotations

from trueup.cli import _options as options
from trueup.cli._command import as_command


@as_command
def mcp(
    root: str = options.opt(".", "The folder below which files may be read.", "FOLDER", show=True),
    write: bool = options.opt(False, "Let tools write new files below the root, too."),
) -> None:
    """Serve check, evaluate, compare, share, agreement, plan_checks and gate to an assistant (MCP over stdio)."""
    from trueup.integrations.mcp import serve

    serve(root, write=write)
