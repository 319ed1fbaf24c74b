"""Sessions, their log, their cards and who may enter."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("fingerprints", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("n_events", sa.Integer, nullable=False),
        sa.Column("n_draws", sa.Integer, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("session", sa.Integer, sa.ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("truth", sa.Text),
        sa.Column("who", sa.Text),
        sa.Column("propensity", sa.Double),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("blind", sa.Boolean),
        sa.Column("draw", sa.Integer),
        sa.Column("key", sa.Text),
        sa.Column("card", sa.Integer),
        sa.Column("opinion", sa.Integer),
        sa.Column("purpose", sa.Text),
        sa.Column("text", sa.Text),
        sa.Column("why", sa.Text),
        sa.Column("shown", sa.Text),
        sa.Column("saw_estimate", sa.Boolean),
    )
    op.create_index("events_key", "events", ["session", "key"], unique=True)
    op.create_index("events_item", "events", ["session", "item"])
    op.create_index("events_card", "events", ["session", "card"])
    op.create_table(
        "cards",
        sa.Column("session", sa.Integer, sa.ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("draw", sa.Integer),
        sa.Column("propensity", sa.Double),
        sa.Column("purpose", sa.Text),
        sa.Column("why", sa.Text),
        sa.Column("reserved_for", sa.Text),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("leased_to", sa.Text),
        sa.Column("leased_until", sa.Double),
    )
    op.create_index("cards_item", "cards", ["session", "item"])
    is_open, is_out = sa.text("NOT closed"), sa.text("NOT closed AND leased_to IS NOT NULL")
    op.create_index("cards_open", "cards", ["session", "number"], sqlite_where=is_open, postgresql_where=is_open)
    op.create_index(
        "cards_one_each",
        "cards",
        ["session", "leased_to"],
        unique=True,
        sqlite_where=is_out,
        postgresql_where=is_out,
    )
    op.create_table(
        "grants",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("session", sa.Integer, sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("use", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("used", sa.Double),
        sa.Column("revoked", sa.Double),
    )
    op.create_index("grants_session", "grants", ["session"])
