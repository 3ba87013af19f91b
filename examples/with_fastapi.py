"""Inside FastAPI: the engine opens with the application, a node works in the same process, routes ask the engine.

python examples/with_fastapi.py [PORT]        then, with the id of the action that the second answers:

curl -X POST localhost:8001/shops/oak/scripts/hello -d "export default () => 'hello'"
curl -X POST localhost:8001/shops/oak/scripts/hello/run
curl localhost:8001/shops/oak/runs/ACTION
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse

from lodger.engine import Engine
from lodger.engine.core.errors import InputError, NotFound


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The engine lives as long as the application; with several web processes, leave the node to ``lodger up --role node``."""
    async with Engine.open("shops.db") as engine, engine.node():
        app.state.engine = engine
        yield


async def the_engine(request: Request) -> Engine:
    """Give the one engine of this process."""
    return request.app.state.engine  # type: ignore[no-any-return]  # the framework keeps anything there


app = FastAPI(lifespan=lifespan)
Opened = Annotated[Engine, Depends(the_engine)]


@app.exception_handler(InputError)
async def refused(_request: Request, error: InputError) -> JSONResponse:
    """What the engine refuses explains itself: your customers may read it."""
    status = 404 if isinstance(error, NotFound) else 422
    return JSONResponse({"code": error.code, "what": error.what, "why": error.why, "fix": error.fix}, status)


@app.post("/shops/{shop}/scripts/{name}")
async def store(shop: str, name: str, request: Request, engine: Opened) -> dict[str, Any]:
    """Store a customer's script; the shop becomes a tenant with its first one."""
    try:
        await engine.tenants.get(shop)
    except NotFound:
        await engine.tenants.create(shop)
    made = await engine.scripts.put(shop, name, (await request.body()).decode())
    return {"version": made.version}


@app.post("/shops/{shop}/scripts/{name}/run")
async def run(shop: str, name: str, engine: Opened) -> dict[str, Any]:
    """Ask for a run; the answer comes at once, the run soon after."""
    return {"action": (await engine.run_in(shop, name, 0)).id}


@app.get("/shops/{shop}/runs/{action}")
async def look(shop: str, action: str, engine: Opened) -> dict[str, Any]:
    """Say what became of a run."""
    found = await engine.actions.get(shop, action)
    return {"state": found.state, "result": found.result, "error": found.error and found.error.message}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8001)
