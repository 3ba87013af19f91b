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
