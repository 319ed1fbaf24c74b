"""The storage in SQLite and PostgreSQL, through SQLAlchemy Core; nothing here works without it."""
