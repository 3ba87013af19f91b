"""Chapter C: attacks on the host through the calls of a script.

Arguments are one JSON text that the parent checks before parsing; call names come from a table, the tenant from the socket. The matrix
replaces the host by a careless one: attribute lookup by name, lenient parser, exception text in replies.
"""

import json

from lodger.escape.attack_files import attacks
from lodger.escape.case import Case, cases
from lodger.escape.cases.scripts.pretenders import HIDE
from lodger.escape.evidence import answers, host_saw
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_CODE = "try { await bridge.call(%s, %s); return 'answered'; } catch (e) { return e.code ?? e.name; }"

CASES = [
    *cases(
        "C41",
        "json_depth",
        _SCRIPTS["nested"],
        lambda prepare: {"script": prepare + _CODE % ("'echo'", "a")},
        seen=answers("bad_request"),
        story="A value that breaks careless parsers.",
    ),
    Case(
        "C41-number-huge",
        "strict_json",
        "a number beyond a double, by raw JSON",
        "const a = JSON.rawJSON ? JSON.rawJSON('1e400') : null;" + _CODE % ("'echo'", "a"),
        seen=answers("bad_request"),
        story="A value that breaks careless parsers.",
    ),
    *(
        Case(
            f"C42-{mark}",
            "strict_json",
            f"the value {mark} there and back",
            f"const given = {value}; const back = await bridge.call('echo', given); return JSON.stringify(back) === {json.dumps(more['arrives']) if more else 'JSON.stringify(given)'};",
            seen=answers(True),
            story="A value is passed exactly, by the rules of JSON, or refused: 4294967303 must never arrive as 7.",
        )
        for mark, value, more in _SCRIPTS["exact"]
    ),
    *(
        Case(
            f"C52-{mark}",
            "flat_text",
            f"an argument that JSON cannot say: {mark}",
            f"try {{ await bridge.call('echo', {value}); return 'crossed'; }} catch {{ return 'refused'; }}",
            seen=answers("refused"),
            story="Values that JSON cannot express are not passed; nothing is stored by the host.",
        )
        for mark, value in _SCRIPTS["throws"]
    ),
    Case(
        "C38-polluted",
        "plain_answers",
        "an answer with __proto__ as a key",
        "const back = await bridge.call('echo', JSON.parse('{\"__proto__\":{\"polluted\":1}}')); return [({}).polluted ?? null, back.polluted ?? null, Object.keys(back)];",
        seen=answers([None, None, ["__proto__"]]),
        story="Keys named like prototypes are passed as data.",
    ),
    Case(
        "C40-reentry",
        "call_state",
        "a call made while another call's arguments are written",
        "const got = []; const first = bridge.call('echo', 'first'); await bridge.call('echo', { toJSON() { got.push(bridge.callSync('echo', 'inner')); return 'outer'; } }).then((v) => got.push(v)); return [...got, await first];",
        seen=answers(["inner", "outer", "first"]),
        story="Calls inside calls keep their own answers.",
    ),
    Case(
        "C40-interleaved",
        "call_state",
        "waiting and other calls interleaved",
        "const all = []; for (let i = 0; i < 20; i++) { all.push(bridge.call('echo', i)); if (bridge.callSync('echo', -i) !== -i && i) return 'mixed'; } return (await Promise.all(all)).join();",
        seen=answers(",".join(map(str, range(20)))),
        story="Each answer goes to its own call.",
    ),
    Case(
        "C53-after-end",
        "one_verdict",
        "calls made after the answer",
        "setTimeout(() => { for (let i = 0; i < 50; i++) bridge.call('nothing', 'late').catch(() => {}); }, 1); return 1;",
        seen=host_saw(),
        story="After the verdict no call has an effect.",
        limits={"host_calls": 60},
    ),
    Case(
        "C37-toobject",
        "flat_text",
        "an argument object that turns into what the host wants",
        HIDE
        + "await bridge.call('nothing', hide({}, { valueOf() { return 7; }, toString() { return 'x'; } })); return null;",
        seen=host_saw(("nothing", "{}")),
        story="Types are checked on the text that arrives.",
    ),
    Case(
        "C47-identity",
        "bound_tenant",
        "another tenant's identity in the arguments",
        "return await bridge.call('whoami', { tenant: 'other', tenant_id: 1, run: 'x', tag: 'y' });",
        seen=answers("escape"),
        story="The socket identifies the tenant; claims in the text have no effect.",
    ),
    Case(
        "C41-large",
        "frame_limit",
        "arguments larger than a frame",
        "try { await bridge.call('nothing', 'x'.repeat(200000)); return 'crossed'; } catch { return 'refused'; }",
        (Outcome.OK, Outcome.OUTPUT_LIMIT),
        seen=answers("refused"),
        story="Arguments are bounded before they are copied.",
        limits={"frame_bytes": 65536},
    ),
    Case(
        "C41-wide-bytes",
        "frame_limit",
        "arguments that are small in characters and large in bytes",
        r"try { await bridge.call('nothing', '\u4e00'.repeat(40000)); return 'crossed'; } catch { return 'refused'; }",
        (Outcome.OK, Outcome.OUTPUT_LIMIT),
        seen=answers("refused"),
        story="Arguments are bounded in bytes, not in characters.",
        limits={"frame_bytes": 65536},
    ),
    Case(
        "C41-reply-large",
        "frame_limit",
        "an answer larger than a frame",
        "try { return (await bridge.call('large', 200000)).length; } catch (e) { return e.code; }",
        seen=answers("reply_too_large"),
        story="An answer that does not fit is refused on the host's side.",
        limits={"frame_bytes": 65536},
    ),
    *cases(
        "C42-raw",
        "checked_result",
        (
            ("exponent", "a number beyond a double", "'1e999'"),
            ("digits", "a number of five thousand digits", "'9'.repeat(5000)"),
            ("negative", "a number below all doubles", "'-1e400'"),
            ("hidden", "a number whose digits hide how large it is", "'9999999999e299'"),
            ("places", "three hundred and nine digits", "'2'.repeat(309)"),
        ),
        lambda number: {"script": f"return JSON.rawJSON ? JSON.rawJSON({number}) : null;"},
        says="a result that is {}, by raw JSON",
        expect=(Outcome.BAD_REQUEST, Outcome.OK),
        seen=answers(None),
        story="A number that no double holds becomes infinity in one parser and an error in the next.",
    ),
]
