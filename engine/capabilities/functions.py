"""Host side of the platform's functions: a call is checked, granted and counted like a request, and answered by the platform."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable
from dataclasses import asdict
from typing import Any

from lodger.engine.capabilities import secrets
from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.access.origins import Origin
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Answer, Fetched
from lodger.engine.core.functions import Endpoint, FunctionCall, FunctionRefused, PlatformFunction
from lodger.engine.core.params import validate_params
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.egress import signature, target
from lodger.engine.egress.request import Redirect, Request

#: Maximum size of the params and of a result, bytes of JSON.
MAX_BODY = 256 * 1024
#: Characters of the platform's message that a script gets.
MAX_MESSAGE = 500
REFUSED = 422
_log = logging.getLogger("lodger.node")


async def call(session: Session, given: dict[str, Any]) -> str:
    """Handle functions.call: return the result as JSON text."""
    function = session.datasets.function(given["name"])
    state, params = session.fetch_state, _params(function, given["args"])
    text = strict_json.dump(params)
    if len(text.encode()) > MAX_BODY:
        raise bad_request(f"{function.name}: the arguments have more than {MAX_BODY} bytes of JSON")
    if secrets.holds_handle(text):
        raise bad_request(
            f"{function.name}: a function cannot get the handle of a secret: handles are replaced in requests of fetch only"
        )
    session.budgets.spend("fetches")
    shown = {"effect": "function", "name": function.name, "params": params} | (
        {"line": given["line"]} if given["line"] else {}
    )
    trial = session.claim.trial and not session.claim.fetches
    if trial and not function.trial:
        state.shown.append(shown | {"sent": False})
        return "null"
    if state.offline:
        raise CallRefused("offline", f"this dry run calls no functions, so the result of {function.name} is unknown")
    key = state.key(Request("CALL", function.name, (), text.encode()))
    answer = await state.earlier_response(key)
    if answer is None:
        claim = session.claim
        about = FunctionCall(
            function.name, claim.tenant_id, claim.action_id, claim.script_name, claim.schedule_id, params,
            state.idempotency_key(key), claim.trial,
        )  # fmt: skip
        if isinstance(function.answered_by, Endpoint):
            answer = await _posted(state, function, function.answered_by, about, key)
        else:
            async with state.slots:
                answer = await _called(function, about)
            state.fetched.append(Fetched(key, answer))
    session.budgets.spend("fetch_bytes", len(text) + len(answer.body), happened=True)
    state.shown.append(shown | {"sent": True, "status": answer.status})
    return _result(function, answer)


def _params(function: PlatformFunction, args: Any) -> dict[str, Any]:
    """Return the arguments of a call by the names of the params; undefined ones are left out."""
    if not isinstance(args, list):
        raise bad_request(f"{function.name}: the arguments must be a list")
    names = [field.name for field in function.fields]
    if len(args) > len(names):
        raise bad_request(
            f"{function.name} takes {len(names)} arguments ({', '.join(names) or 'none'}); {len(args)} were given"
        )
    given = {
        name: strict_json.plain(strict_json.normal(value))
        for name, value in zip(names, args, strict=False)
        if value is not None
    }
    try:
        return dict(validate_params(function.fields, given))
    except InputError as refused:
        raise bad_request(f"{function.name}: {refused.what}: {refused.why}") from None


async def _posted(
    state: FetchState, function: PlatformFunction, place: Endpoint, about: FunctionCall, key: str
) -> Answer:
    """Send a call to the platform, signed as a webhook is."""
    body = strict_json.dump({name.removesuffix("_id"): value for name, value in asdict(about).items()}).encode()
    url, origin = f"{place.url}/{function.name}", target.read(place.url).origin

    def is_platform(wanted: Origin) -> bool:
        """Whether a request goes to the platform's own address, the only one that this call may reach."""
        return wanted == origin

    headers = (
        ("content-type", "application/json"), ("accept", "application/json"), ("idempotency-key", about.idempotency_key),
        *signature.headers(place.secret, about.idempotency_key, SystemClock().now_us() // 1_000_000, body),
    )  # fmt: skip
    request = Request(
        "POST", url, headers, body, Redirect.MANUAL, allowed=is_platform, payer=about.tenant_id, total_s=function.timeout_s,
        late=f"no complete answer came within {function.timeout_s:g} s", max_body=MAX_BODY, trusted=True,
    )  # fmt: skip
    try:
        return await state.send_request(request, key, lambda answer: answer)
    except CallRefused as refused:
        if refused.code == "response_too_large":
            raise _failed(function, f"the platform's answer has more than {MAX_BODY} bytes") from None
        raise _failed(
            function, refused.message if refused.code != "fetch_refused" else "the platform's URL is not reachable"
        ) from None


async def _called(function: PlatformFunction, about: FunctionCall) -> Answer:
    """Call a Python function: a coroutine function on this loop, another one in a thread of its own."""
    python = function.answered_by
    assert not isinstance(python, Endpoint)
    work: Awaitable[Any] = python(about) if inspect.iscoroutinefunction(python) else _threaded(function, about)
    try:
        result = await asyncio.wait_for(work, function.timeout_s)
        body = strict_json.dump(result).encode()
    except FunctionRefused as refused:
        return Answer(REFUSED, "", "", (), strict_json.dump({"message": str(refused)}).encode(), False, 0, 0)
    except TimeoutError:
        raise _failed(function, f"it did not return within {function.timeout_s:g} s") from None
    except Exception as error:
        # A tenant reads the error of the run: what the platform's code says is for the operator.
        _log.exception("function %s of tenant %s", function.name, about.tenant_id)
        raise _failed(function, "the platform's function raised an error") from error
    if len(body) > MAX_BODY:
        raise _failed(function, f"its result has more than {MAX_BODY} bytes of JSON")
    return Answer(200, "", "", (), body, False, 0, 0)


def _threaded(function: PlatformFunction, about: FunctionCall) -> "asyncio.Future[Any]":
    """Call a function in a daemon thread: no pool waits for one that never returns."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def set_outcome(result: Any, error: BaseException | None) -> None:
        """Set the result or the error of the call, unless the call was given up."""
        if not done.done():
            done.set_result(result) if error is None else done.set_exception(error)

    def call_function() -> None:
        """Call the platform's function, and hand its result or error to the event loop."""
        result, raised = None, None
        try:
            result = function.answered_by(about)  # type: ignore[operator]  # it is no Endpoint
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            raised = error
        except BaseException as error:  # noqa: BLE001 - SystemExit of a function must not end a thread in silence
            raised = RuntimeError(repr(error))
        try:
            loop.call_soon_threadsafe(set_outcome, result, raised)
        except RuntimeError:
            _log.warning("function %s ended after its node was stopped", function.name)

    threading.Thread(target=call_function, name=f"lodger-function-{function.name}", daemon=True).start()
    return done


def _result(function: PlatformFunction, answer: Answer) -> str:
    """Return an answer's JSON text, checked; an answer 400 to 499 with a message is the platform's refusal.

    Raises:
        CallRefused: function_refused, function_failed.
    """
    try:
        text = answer.body.decode()
        value = strict_json.parse(text) if text.strip() else None
    except (CallRefused, UnicodeDecodeError):
        if 200 <= answer.status < 300:
            raise _failed(function, "the platform's answer is not JSON") from None
        value = None
    if 400 <= answer.status < 500 and isinstance(value, dict) and isinstance(value.get("message"), str):
        raise CallRefused(
            "function_refused", f"{function.name}: {value['message'][:MAX_MESSAGE]}", details={"status": answer.status}
        )
    if not 200 <= answer.status < 300:
        raise _failed(function, f"the platform answered {answer.status}")
    if function.returns is not None:
        try:
            value = validate_params(function.returns, {"result": value}).get("result")
        except InputError:
            raise _failed(function, f"the platform's answer is not the declared {function.returns[0].type}") from None
    return strict_json.dump(value)


def _failed(function: PlatformFunction, why: str) -> CallRefused:
    """Return the refusal ``function_failed`` of a call of this function."""
    return CallRefused("function_failed", f"{function.name}: {why}")


HANDLERS = {"functions.call": call}
