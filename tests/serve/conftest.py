"""The fixtures of the app; what they are made of can be imported by tests."""

import pytest

pytest.importorskip("fastapi", reason="the app needs the extra serve: pip install 'trueup[serve]'")
pytest.importorskip("sqlalchemy", reason="the app needs the extra storage: pip install 'trueup[serve]'")

from vetting_server import empty_database, listening, make_vetting, proxy, vetting

__all__ = ["empty_database", "listening", "make_vetting", "proxy", "vetting"]
