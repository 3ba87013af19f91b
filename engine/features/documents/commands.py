"""Documents on the command line."""

import json

from lodger.engine.output import groups, views

groups.HELP["document"] = "Read and change the documents that a tenant's scripts keep in collections."
views.COLUMNS["Document"] = (
    ("document", "document"),
    ("values", lambda each: json.dumps(each.values, ensure_ascii=False)),
)
