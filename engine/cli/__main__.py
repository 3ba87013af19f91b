"""``python -m lodger.engine.cli`` is ``lodger``."""

from lodger.engine.cli import main

main()
