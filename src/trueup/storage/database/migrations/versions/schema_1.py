"""Sessions, their log, their cards and who may enter."""

from alembic import op

from trueup.storage.database.tables import metadata

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables. Before the tables of the code change, write them out here: this schema stays as it is."""
    metadata.create_all(op.get_bind())
