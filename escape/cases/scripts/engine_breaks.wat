;;= A1-owned checked_pointers
;;: made "owned"
;;: says "the engine, taken over, hands over {}"
;;: expect ["crashed"]
;;: seen {"survives": true, "exits": true}
;;: story "The engine is compromised: every pointer from it is checked against its memory's size."
;;: runtimes ["quickjs"]
;;: limits {"memory_bytes": 67108864}
;; Calls of a compromised engine: name, mechanism, instructions, results of its functions.
;;- text: a text two gigabytes away
(drop (call $host_call (i32.const 19) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 2048)))
;;+ qjs_last_ptr
(i32.const 0x7fff0000)
;;+ qjs_last_len
(i32.const 64)
;;- text-wrap: a text at the end of all addresses
(drop (call $host_call (i32.const 19) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 2048)))
;;+ qjs_last_ptr
(i32.const -16)
;;+ qjs_last_len
(i32.const 64)
;;- result: a result two gigabytes away
(drop (call $host_call (i32.const 18) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 2048)))
;;+ qjs_last_ptr
(i32.const 0x7fff0000)
;;+ qjs_last_len
(i32.const 64)
;;- error: an error two gigabytes away
(drop (call $host_call (i32.const 20) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 2048)))
;;+ qjs_last_ptr
(i32.const 0x7fff0000)
;;+ qjs_last_len
(i32.const 64)
;;- across: a text that begins inside and ends outside
(drop (call $host_call (i32.const 19) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 2048)))
;;+ qjs_last_ptr
(i32.const 1179000)
;;+ qjs_last_len
(i32.const 250000)
;;- operation: the name of an operation far away
(drop (call $host_call (i32.const 0x7fff0000) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))
;;- arguments: the table of arguments far away
(drop (call $host_call (i32.const 19) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 0x7fff0000)))
;;- arguments-wrap: the table of arguments at the end of all addresses
(drop (call $host_call (i32.const 19) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const -2)))
;;- random: randomness far away
(drop (call $random_get (i32.const 0x7fff0000) (i32.const 64)))
;;- random-long: randomness across the end
(drop (call $random_get (i32.const 1179000) (i32.const 65536)))
;;- clock: the time far away
(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 0x7fff0000)))
;;- module: the name of a module far away
(drop (call $host_module_load (i32.const 0x7fff0000) (i32.const 64) (i32.const 2048)))
;;- module-long: the name of a module of two gigabytes
(drop (call $host_module_load (i32.const 16) (i32.const 0x7fffffff) (i32.const 2048)))
;;- normalize: what a module is asked by far away
(drop (call $host_module_normalize (i32.const 0x7fff0000) (i32.const 9) (i32.const 16) (i32.const 1) (i32.const 2048)))
;;- normalize-wanted: what a module asks for far away
(drop (call $host_module_normalize (i32.const 16) (i32.const 1) (i32.const 0x7fff0000) (i32.const 9) (i32.const 2048)))
;;- normalize-out: where a module's name goes far away
(drop (call $host_module_normalize (i32.const 16) (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 0x7fff0000)))
;;- alloc: memory for an answer far away
(drop (call $host_module_normalize (i32.const 16) (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 2048)))
;;+ qjs_alloc
(select (i32.const 0x7fff0000) (i32.const 4096) (global.get $owned))

;;= C45-owned-claims claimed_outcomes
;;: made "claiming"
;;: says "the engine, taken over, claims to have ended as {}"
;;: expect ["protocol_error"]
;;: seen {"ends_as": ["protocol_error"]}
;;: story "A worker may only report outcomes that blame its script; the parent decides all others."
;;: runtimes ["quickjs"]
;;- worker-lost: worker_lost
worker_lost
;;- engine-fault: engine_fault
engine_fault
;;- wall-limit: wall_limit
wall_limit
;;- conflict: conflict
conflict
;;- cancelled: cancelled
cancelled
;;- denied: denied
denied
;;- ok: ok
ok

;;= C44-owned strict_json
;;: made "calling"
;;: says "the engine, taken over, calls with {}"
;;: expect ["script_error"]
;;: seen {"unanswered": true}
;;: story "Two parsers would read it differently, or one of them not at all: it is refused, not repaired."
;;: runtimes ["quickjs"]
;;- twice: one key twice
{"a":1,"a":2}
;;- twice-deep: one key twice, deep inside
[{"x":[{"a":1,"b":2,"a":3}]}]
;;- twice-escaped: one key twice, once by an escape
{"a":1,"\u0061":2}
;;- twice-prototype: a prototype's name twice
{"__proto__":1,"__proto__":2}

;;= C42-owned strict_json
;;: made "calling"
;;: says "the engine, taken over, calls with {}"
;;: expect ["script_error"]
;;: seen {"unanswered": true}
;;: story "Two parsers would read it differently, or one of them not at all: it is refused, not repaired."
;;: runtimes ["quickjs"]
;;- nan: NaN
NaN
;;- infinity: less than all numbers
-Infinity
;;- exponent: a number beyond all
1e999
;;- digits: a number of four hundred digits
«9×400»
;;- hidden: a number whose digits hide how large it is
9999999999e299
;;- long: two hundred digits and two hundred places more
«1×200»e200

;;= C45-owned-result checked_result
;;: made "resulting"
;;: says "the engine, taken over, gives as its result {}"
;;: expect ["protocol_error", "bad_request"]
;;: seen {"ends_as": ["protocol_error", "bad_request"]}
;;: story "A result is checked before it is parsed."
;;: runtimes ["quickjs"]
;;- half: half an object
{"a":1
;;- nan: NaN
NaN
;;- infinity: a number beyond all
1e999
;;- two: two values
1 2
;;- twice: an object with one key twice
{"a":1,"a":2}
;;- hidden: a number whose digits hide how large it is
9999999999e299
;;- long: two hundred digits and two hundred places more
«1×200»e200
;;- nothing: nothing at all

;;- python: a value of another language
{'a': True}
