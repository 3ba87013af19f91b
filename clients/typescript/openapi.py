"""Write the OpenAPI document of this checkout to ``openapi.json``, from which the client's types are generated."""

import json
import tempfile
from pathlib import Path

from lodger.engine.server.app import Api
from lodger.engine.sync import Engine

HERE = Path(__file__).resolve().parent


def document() -> str:
    """Return the document."""
    with tempfile.TemporaryDirectory() as folder, Engine.open(f"sqlite:///{folder}/ledger.db") as engine:
        return json.dumps(Api(engine).description(), indent=1)


if __name__ == "__main__":
    (HERE / "openapi.json").write_text(document())
