"""Tools for folders of scripts: read, checked, tested, played on a virtual clock, compared with a ledger. They print nothing."""
