;;= I131 proposals_off
;;: made "assembled"
;;: expect ["compile_error"]
;;: seen {"survives": true, "ends_as": ["compile_error"]}
;;: story "Each part of WebAssembly that a command does not need is compiler and runtime code that an attacker could reach."
;;- atomics: atomic arithmetic
(drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
;;- fence: a fence between threads
atomic.fence
;;- notify: waking threads that wait
(drop (memory.atomic.notify (i32.const 0) (i32.const 1)))
;;- tail-call: a call in the place of a return
return_call $f
;;+ items
(func $f)
;;- tail-call-indirect: the same by a table
(return_call_indirect (type $t) (i32.const 0))
;;+ items
(type $t (func)) (func $f) (table 1 funcref) (elem (i32.const 0) $f)
;;- function-references: a typed reference to a function
(call_ref $t (ref.func $f))
;;+ items
(type $t (func)) (func $f (type $t)) (elem declare func $f)
;;- structs: objects of the collector
(drop (struct.new $s (i32.const 1)))
;;+ items
(type $s (struct (field i32)))
;;- arrays: arrays of the collector
(drop (array.new_default $a (i32.const 9)))
;;+ items
(type $a (array i32))
;;- small-integers: tagged integers
(drop (ref.i31 (i32.const 1)))
;;- relaxed-vectors: vectors whose result depends on the processor
(drop (i32x4.relaxed_trunc_f32x4_s (v128.const f32x4 1 2 3 4)))
;;- memories: a second memory

;;+ items
(memory 1)
;;- memory64: a memory of sixty-four bits beside

;;+ items
(memory i64 1)
;;- table64: a table of sixty-four bits

;;+ items
(table i64 1 funcref)
;;- wide: arithmetic of a hundred and twenty-eight bits
(i64.add128 (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)) drop drop
;;- exceptions: a thrown exception
(block $b (try_table (catch_all $b) (throw $e)))
;;+ items
(tag $e)
;;- tags: a tag for exceptions

;;+ items
(tag $e (param i32))
;;- page-size: pages of one byte

;;+ memory
(memory (export "memory") 65536 (pagesize 1))
;;- continuations: a type of continuations

;;+ items
(type $f (func)) (type $c (cont $f))

;;= I130 compile_limits
;;: made "bomb"
;;: expect ["cpu_limit", "memory_limit", "crashed"]
;;: seen {"compiled_in_time": true}
;;: story "A small module is slow to compile: it is compiled in a separate worker with its own limits."
;;: limits {"wasm_bytes": 8388608, "wall_ms": 5000}
;; Instructions in hexadecimal digits, how often each body has them, and what else it has.
;;- ifs: half a million conditions after another
20 00 04 40 20 00 41 01 6a 21 00 0b
;;+ times
500000
;;- sums: a function of six hundred thousand sums
20 00 41 07 6a 22 00 20 00 6c 21 00
;;+ times
600000
;;- jump-tables: three and a half thousand jump tables of two thousand ends
02 40 20 00 0e d0 0f «00 ×2001»0b
;;+ times
3600
;;- loops: two hundred thousand loops in one another
03 40
;;+ times
200000
;;+ middle
20 00 0d 00
;;+ after
0b
;;- functions: a hundred thousand functions
«20 00 41 07 6a 21 00 ×8»
;;+ number
100000
;;- loads: a chain of a million loads
20 00 28 02 00 21 00
;;+ times
900000
;;- calls: a million calls in a row
10 00
;;+ times
1500000
;;- floats: a million conversions
20 00 b2 91 a8 21 00
;;+ times
900000
;;- divisions: a million divisions that may trap
20 00 41 07 6e 21 00
;;+ times
900000
;;- variables: forty thousand variables, mixed
;;: made "variables"
40000

;;= I130 wasm_bytes
;;: made "large"
;;: expect ["source_too_large"]
;;: seen {"ends_as": ["source_too_large"]}
;;: story "A module that is too large is refused before it reaches a compiler."
;;: limits {"wasm_bytes": 65536}
;;- too-large: a module one byte too large
65537

;;= I135 checked_code
;;: made "machine_code"
;;: expect ["compile_error"]
;;: seen {"survives": true, "ends_as": ["compile_error"]}
;;: story "Machine code from a tenant is not accepted; modules are compiled here."
;; A careless compiler would pass them to the loader of machine code.
;;- machine-code: machine code that our own compiler made

;;- machine-code-more: the same with bytes after its end

;;+ more
«00×64»
