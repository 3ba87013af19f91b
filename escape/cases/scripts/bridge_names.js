//= C48-malformed name_check
//: says "a name that is {}"
//: script "try { await bridge.call(ATTACK, {}); return 'answered'; } catch (e) { return e.code ?? e.name; }"
//: expect ["ok", "protocol_error", "script_error", "bad_request"]
//: seen {"no_answer": true}
//: story "An invalid name is refused at any stage."
//- empty
''
//- space
'echo echo'
//- newline
'echo\nhold'
//- nul
'echo\u0000x'
//- tab
'echo\tx'
//- emoji
'\u{1f600}'
//- surrogate
'\ud800'
//- long
'x'.repeat(256)
//- very-long
'x'.repeat(100000)
//- symbol
Symbol('echo')
//- escape
'echo\u001b[2J'
//- bidi
'echo\u202e'

//= C50 safe_errors
//: says "the refusal of {}"
//: script "try { return String(await bridge.call(ATTACK)); } catch (e) { const all = [e.message, e.stack, JSON.stringify(e)].join('\\n'); return /Traceback|File \"|\\.py\\b|site-packages|object at 0x/.test(all) ? all : 'clean'; }"
//: seen {"nothing_of_ours": true}
//: story "The text of a host exception never reaches a script."
//- unknown
'zzz', 1
//- attribute
'asked_', {}
//- class
'__class__', {}
//- missing
'echo_', null
//- format
'{0.__class__}', null

//= C50 no_paths
//: expect ["script_error", "compile_error"]
//: seen {"tells_nothing": true}
//: story "No error contains a path, an address, or text of the host's languages."
//- message-path: a missing module
await import('/nowhere.js');
//- message-null: a property of null
null.x;
//- message-native: an error inside a built-in
[].reduce((a) => a);
//- message-regexp: a pattern that does not compile
new RegExp('(');
//- message-json: text that is not JSON
JSON.parse('{');
//- message-atob: text that is not base64
atob('*');
//- message-url: a text that is no address
new URL('::');
//- message-decode: bytes that are no text
new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]));
//- message-bigint: an integer too large
10n ** 10n ** 10n;
//- message-stack: the stack of an error inside a host call
const e = await bridge.call('zzz', 1).catch((e) => e); throw new Error(e.stack);
//- message-clone: a function that cannot be cloned
structuredClone(() => 1);
//- message-timer: a timer without a function
setTimeout('x');
//- message-digest: a digest that is not known
await crypto.subtle.digest('MD5', new Uint8Array(1));
//- message-abort: an aborted signal
AbortSignal.abort().throwIfAborted();
//- message-throw-null: a thrown null
throw null;
//- message-throw-function: a thrown function of the glue
throw console.log;
//- message-throw-bridge: a thrown host function
throw bridge.call;
//- message-throw-global: the thrown global object
throw globalThis;
//- message-eval: an error inside eval
eval('null.x');
//- message-cause: an error with a cause from the host
try { await bridge.call('zzz', 1); } catch (cause) { throw new Error('outer', { cause }); }
//- message-aggregate: all of many host calls refused
await Promise.any([bridge.call('zzz', 1), bridge.call('yyy', 1)]);
//- message-surrogates: an error whose text is lone surrogates
throw new Error('\ud800'.repeat(100));
//- message-long: an error of a million characters
throw new Error('x'.repeat(1e6));
//- message-nul: an error with NULs and escapes
throw new Error('a\u0000b\u001b[2J');

//= C48 call_table
//: says "the name {}"
//: script "try { await bridge.call(ATTACK, {}); return 'answered'; } catch (e) { return e.code ?? e.name; }"
//: seen {"answers": ["unknown_call"]}
//: story "A call's name is looked up in a table, never on an object."
//- class-0: __class__
"__class__"
//- init-1: __init__
"__init__"
//- dict-2: __dict__
"__dict__"
//- call-3: __call__
"__call__"
//- reduce-4: __reduce__
"__reduce__"
//- reduce-ex-5: __reduce_ex__
"__reduce_ex__"
//- getattribute-6: __getattribute__
"__getattribute__"
//- subclasshook-7: __subclasshook__
"__subclasshook__"
//- module-8: __module__
"__module__"
//- doc-9: __doc__
"__doc__"
//- eq-10: __eq__
"__eq__"
//- hash-11: __hash__
"__hash__"
//- dir-12: __dir__
"__dir__"
//- sizeof-13: __sizeof__
"__sizeof__"
//- format-14: __format__
"__format__"
//- repr-15: __repr__
"__repr__"
//- str-16: __str__
"__str__"
//- call-17: call
"call"
//- log-18: log
"log"
//- asked-19: asked
"asked"
//- lines-20: lines
"lines"
//- held-21: held
"held"
//- release-22: release
"release"
//- private-23: _private
"_private"
//- limits-24: _limits
"_limits"
//- careless-25: _careless
"_careless"
//- private-26: private
"private"
//- naive-27: naive
"naive"
//- careless-28: careless
"careless"

//= C48 call_table
//: says "the name {}"
//: script "try { await bridge.call(ATTACK, {}); return 'answered'; } catch (e) { return e.code ?? e.name; }"
//: seen {"answers": ["unknown_call"]}
//: story "A call's name is data: no format, no path, no code."
//- os-system-100: os.system
"os.system"
//- eval-101: eval
"eval"
//- exec-102: exec
"exec"
//- constructor-103: constructor
"constructor"
//- tostring-104: toString
"toString"
//- hasownproperty-105: hasOwnProperty
"hasOwnProperty"
//- echo-106: ../echo
"../echo"
//- echo-107: Echo
"Echo"
//- echo-108: ECHO
"ECHO"
//- echo-call-109: echo.call
"echo.call"
//- echo-0-110: echo[0]
"echo[0]"
//- echo-drop-111: echo;drop
"echo;drop"
//- db-execute-112: db.execute
"db.execute"
//- 0---class-113: {0.__class__}
"{0.__class__}"
//- s-114: %s
"%s"
//- n-n-n-115: %n%n%n
"%n%n%n"
//- jndi-ldap---x-116: ${jndi:ldap://x}
"${jndi:ldap://x}"
//- 7-7-117: {{7*7}}
"{{7*7}}"
//- script-118: <script>
"<script>"
//- 1-119: -1
"-1"
//- 0-120: 0
"0"
//- null-121: null
"null"
