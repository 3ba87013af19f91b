// Chapter C: attacks on the host through the calls of a script. Arguments are one JSON text that the parent checks before parsing; call names come
// from a table, the tenant from the socket. The matrix replaces the host by a careless one: attribute lookup by name, lenient parser, exception
// text in replies.

//= C41 json_depth
//: script "ATTACKtry { await bridge.call('echo', a); return 'answered'; } catch (e) { return e.code ?? e.name; }"
//: seen {"answers": ["bad_request"]}
//: story "A value that breaks careless parsers."
// How arguments are created that are refused. The guest itself refuses more than a hundred levels; these pass it.
//- deep-array: an array nested ninety deep
let a = []; for (let i = 1; i < 90; i++) a = [a];
//- deep-object: an object nested ninety deep
let a = {}; for (let i = 1; i < 90; i++) a = { a };
//- deep-mixed: arrays and objects nested a hundred deep
let a = 1; for (let i = 0; i < 50; i++) a = [{ a }];
//- deep-limit: one level too many
let a = 1; for (let i = 0; i < 65; i++) a = [a];

//= C42 strict_json
//: script "const given = ATTACK; const back = await bridge.call('echo', given); return JSON.stringify(back) === JSON.stringify(given);"
//: says "the value {} there and back"
//: seen {"answers": [true]}
//: story "A value is passed exactly, by the rules of JSON, or refused: 4294967303 must never arrive as 7."
//- two-53-text
'9007199254740993'
//- twins-key
{ '\u00e9': 1, 'e\u0301': 2 }
//- format-percent
'%s%s%s%d'
//- ligature
'\ufb01le'
//- full-width
'\uff0e\uff0e\uff0f'
//- twins
['\u00e9', 'e\u0301']
//- format
'{0.__class__}'
//- proto-key
JSON.parse('{"__proto__":{"x":1},"a":1}')

//= C42 strict_json
//: script "const given = ATTACK; const back = await bridge.call('echo', given); return JSON.stringify(back) === ARRIVES;"
//: says "the value {} there and back"
//: seen {"answers": [true]}
//: story "A value is passed exactly, by the rules of JSON, or refused: 4294967303 must never arrive as 7."
//- two-32
//: put {"ARRIVES": "\"[4294967296,-2147483649]\""}
[2 ** 32, -(2 ** 31) - 1]
//- nul-deep
//: put {"ARRIVES": "\"{\\\"a\\\":[\\\"x\\\\u0000y\\\"]}\""}
{ a: ['x\u0000y'] }
//- safe-integer
//: put {"ARRIVES": "\"9007199254740991\""}
2 ** 53 - 1
//- idor-integer
//: put {"ARRIVES": "\"4294967303\""}
2 ** 32 + 7
//- two-31
//: put {"ARRIVES": "\"2147483648\""}
2 ** 31
//- nul
//: put {"ARRIVES": "\"\\\"admin\\\\u0000evil\\\"\""}
'admin\u0000evil'
//- nul-key
//: put {"ARRIVES": "\"{\\\"a\\\\u0000b\\\":1}\""}
{ 'a\u0000b': 1 }
//- lone-high
//: put {"ARRIVES": "\"\\\"\\\\ud800\\\"\""}
'\ud800'
//- lone-low
//: put {"ARRIVES": "\"\\\"x\\\\udc00\\\"\""}
'x\udc00'
//- lone-key
//: put {"ARRIVES": "\"{\\\"\\\\ud800\\\":1}\""}
{ '\ud800': 1 }

//= C52 flat_text
//: says "an argument that JSON cannot say: {}"
//: script "try { await bridge.call('echo', ATTACK); return 'crossed'; } catch { return 'refused'; }"
//: seen {"answers": ["refused"]}
//: story "Values that JSON cannot express are not passed; nothing is stored by the host."
//- bigint
10n ** 5000n
//- bigint-small
10n
//- cyclic
(() => { const a = []; a.push(a); return a; })()
//- cyclic-map
(() => { const a = {}; a.b = { c: [a] }; return a; })()
//- throwing-getter
{ get x() { throw new Error('mine'); } }
//- throwing-tojson
{ toJSON() { throw null; } }
//- revoked-proxy
(() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; })()
//- function
() => 1
//- symbol
Symbol('x')

//= C41 strict_json
//: seen {"answers": ["bad_request"]}
//: story "A value that breaks careless parsers."
//- number-huge: a number beyond a double, by raw JSON
const a = JSON.rawJSON ? JSON.rawJSON('1e400') : null;try { await bridge.call('echo', a); return 'answered'; } catch (e) { return e.code ?? e.name; }

//= C38 plain_answers
//: seen {"answers": [[null, null, ["__proto__"]]]}
//: story "Keys named like prototypes are passed as data."
//- polluted: an answer with __proto__ as a key
const back = await bridge.call('echo', JSON.parse('{"__proto__":{"polluted":1}}')); return [({}).polluted ?? null, back.polluted ?? null, Object.keys(back)];

//= C40 call_state
//: seen {"answers": [["inner", "outer", "first"]]}
//: story "Calls inside calls keep their own answers."
//- reentry: a call made while another call's arguments are written
const got = []; const first = bridge.call('echo', 'first'); await bridge.call('echo', { toJSON() { got.push(bridge.callSync('echo', 'inner')); return 'outer'; } }).then((v) => got.push(v)); return [...got, await first];

//= C40 call_state
//: seen {"answers": ["0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19"]}
//: story "Each answer goes to its own call."
//- interleaved: waiting and other calls interleaved
const all = []; for (let i = 0; i < 20; i++) { all.push(bridge.call('echo', i)); if (bridge.callSync('echo', -i) !== -i && i) return 'mixed'; } return (await Promise.all(all)).join();

//= C53 one_verdict
//: seen {"host_saw": []}
//: story "After the verdict no call has an effect."
//: limits {"host_calls": 60}
//- after-end: calls made after the answer
setTimeout(() => { for (let i = 0; i < 50; i++) bridge.call('nothing', 'late').catch(() => {}); }, 1); return 1;

//= C37 flat_text
//: seen {"host_saw": [["nothing", "{}"]]}
//: story "Types are checked on the text that arrives."
//- toobject: an argument object that turns into what the host wants
const hide = (object, members) => { for (const name in members) Object.defineProperty(object, name, { value: members[name] }); return object; }; await bridge.call('nothing', hide({}, { valueOf() { return 7; }, toString() { return 'x'; } })); return null;

//= C47 bound_tenant
//: seen {"answers": ["escape"]}
//: story "The socket identifies the tenant; claims in the text have no effect."
//- identity: another tenant's identity in the arguments
return await bridge.call('whoami', { tenant: 'other', tenant_id: 1, run: 'x', tag: 'y' });

//= C41 frame_limit
//: expect ["ok", "output_limit"]
//: seen {"answers": ["refused"]}
//: story "Arguments are bounded before they are copied."
//: limits {"frame_bytes": 65536}
//- large: arguments larger than a frame
try { await bridge.call('nothing', 'x'.repeat(200000)); return 'crossed'; } catch { return 'refused'; }

//= C41 frame_limit
//: expect ["ok", "output_limit"]
//: seen {"answers": ["refused"]}
//: story "Arguments are bounded in bytes, not in characters."
//: limits {"frame_bytes": 65536}
//- wide-bytes: arguments that are small in characters and large in bytes
try { await bridge.call('nothing', '\u4e00'.repeat(40000)); return 'crossed'; } catch { return 'refused'; }

//= C41 frame_limit
//: seen {"answers": ["reply_too_large"]}
//: story "An answer that does not fit is refused on the host's side."
//: limits {"frame_bytes": 65536}
//- reply-large: an answer larger than a frame
try { return (await bridge.call('large', 200000)).length; } catch (e) { return e.code; }

//= C42-raw checked_result
//: says "a result that is {}, by raw JSON"
//: script "return JSON.rawJSON ? JSON.rawJSON(ATTACK) : null;"
//: expect ["bad_request", "ok"]
//: seen {"answers": [null]}
//: story "A number that no double holds becomes infinity in one parser and an error in the next."
//- exponent: a number beyond a double
'1e999'
//- digits: a number of five thousand digits
'9'.repeat(5000)
//- negative: a number below all doubles
'-1e400'
//- hidden: a number whose digits hide how large it is
'9999999999e299'
//- places: three hundred and nine digits
'2'.repeat(309)
