"""Names of tables and columns, quoted for SQL that is written by hand: views, triggers, grants.

The preparers of live engines double every percent sign, for drivers that look for parameters in what they are given; in a
statement without any it would be part of the name.
"""

from functools import cache

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.compiler import IdentifierPreparer

from lodger.engine.data.values.stored import SQLITE


@cache
def preparer(dialect: str) -> IdentifierPreparer:
    """Give what quotes names for ``sqlite`` or ``postgresql``."""
    made = (sqlite if dialect == SQLITE else postgresql).dialect(paramstyle="named")
    found: IdentifierPreparer = made.identifier_preparer
    return found
