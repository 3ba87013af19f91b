//= A4-canary loader
//: says "{} of the canary file"
//: put {"PATH": "CANARY_PATH"}
//: seen {"answers": ["refused"]}
//: story "A module specifier names a file of the host."
//: behind ["seccomp", "landlock", "root", "namespaces", "uid"]
//: runtimes ["quickjs"]
//: again [{"group": "A4-passwd", "says": "{} of a file of the system", "put": {"PATH": "/etc/passwd"}}]
//: expect ["compile_error", "script_error"]
// Spellings of the name; PATH is the canary file or a system file.
//- static: a static import
import text from 'PATH';
export default () => text;
//- static-attribute: a static import with a type
import text from 'PATH' with { type: 'json' };
export default () => text;
//- star: a star export
export * from 'PATH';
export default () => 1;
//- dynamic: import()
return (await import('PATH')).default;

//= A4-canary loader
//: says "{} of the canary file"
//: put {"PATH": "CANARY_PATH"}
//: seen {"answers": ["refused"]}
//: story "A module specifier names a file of the host."
//: behind ["seccomp", "landlock", "root", "namespaces", "uid"]
//: runtimes ["quickjs"]
//: again [{"group": "A4-passwd", "says": "{} of a file of the system", "put": {"PATH": "/etc/passwd"}}]
//- dynamic-caught: import() whose refusal is caught
try { return (await import('PATH')).default; } catch { return 'refused'; }
//- eval: import() inside eval
try { return (await (0, eval)(`import('PATH')`)).default; } catch { return 'refused'; }
//- function: import() inside a made function
try { return (await new Function(`return import('PATH')`)()).default; } catch { return 'refused'; }
//- timer: import() from a timer
return await new Promise((r) => setTimeout(() => import('PATH').then((m) => r(m.default), () => r('refused')), 1));
//- computed: import() of a computed name
try { return (await import(['', ...'PATH'.split('/').slice(1)].join('/'))).default; } catch { return 'refused'; }

//= A4 empty_meta
//: seen {"nothing_of_the_host": true}
//: story "A module learns no path about itself."
//: runtimes ["quickjs"]
//- meta: import.meta
export default () => Object.getOwnPropertyNames(import.meta).concat(Object.values(import.meta).map(String));

//= A14 reseed
//: seen {"all_different": true}
//: story "Forks of one process draw the same numbers unless each is seeded again."
//: tries 20
//- random: the first random number of twenty workers
return Math.random();

//= A14 reseed
//: seen {"all_different": true}
//: story "Forks of one process draw the same numbers unless each is seeded again."
//: tries 10
//- random-late: the hundredth random number of ten workers
for (let i = 0; i < 99; i++) Math.random(); return Math.random();

//= shared
//- try
try {
  const found = await import(NAME);
  const names = Object.getOwnPropertyNames(found).filter((n) => n !== 'default');
  return names.length === 0 && (found.default === undefined || typeof found.default === 'function' && String(found.default).includes('own main')) ? 'refused' : names;
} catch { return 'refused'; }
/* own main */

//= A4-name loader
//: made "named"
//: says "import() of the name {}"
//: seen {"answers": ["refused"]}
//: story "Names of built-in modules of other hosts, and of the glue, cannot be imported."
//: behind ["seccomp", "landlock", "root", "namespaces", "uid"]
//: runtimes ["quickjs"]
//- std
"std"
//- os
"os"
//- bjson
"bjson"
//- qjs-std
"qjs:std"
//- qjs-os
"qjs:os"
//- node-fs
"node:fs"
//- fs
"fs"
//- child-process
"child_process"
//- bun
"bun:ffi"
//- deno
"ext:core/mod.js"
//- file-url
"file:///etc/passwd"
//- http-url
"http://127.0.0.1/x.js"
//- https-url
"https://example.org/x.js"
//- data-url
"data:text/javascript,export default 'owned'"
//- blob-url
"blob:null/1"
//- up
"../../../../../../etc/passwd"
//- up-dots
"./../.././../etc/passwd"
//- encoded-up
"%2e%2e/%2e%2e/etc/passwd"
//- backslash
"..\\..\\etc\\passwd"
//- nul
"./other.js\u0000.txt"
//- proc-self
"/proc/self/environ"
//- proc-root
"/proc/1/root/etc/passwd"
//- dev
"/dev/stdin"
//- dot
"."
//- slash
"/"
//- native
"./native.so"
//- json
"./package.json"
//- wasm
"./module.wasm"
//- eval-script
"eval_script"
//- input
"<input>"
//- self-query
"main.js?x"
//- self-hash
"main.js#x"
//- proto
"__proto__"
//- constructor
"constructor"

//= A12 source_text
//: script "try { return (await import('./blob.js')).default ?? 'refused'; } catch { return 'refused'; }"
//: expect ["ok", "bad_request", "compile_error"]
//: seen {"answers": ["refused"]}
//: story "Compiled code is not accepted: a module is source text."
//: runtimes ["quickjs"]
//- bytecode: a module that begins like engine bytecode
//: modules {"blob.js": "\u0001\u0002C\u0002\u0000export default 1"}

//- wasm: a module that begins like WebAssembly
//: modules {"blob.js": "\u0000asm\u0001\u0000\u0000\u0000"}

//- elf: a module that begins like a program
//: modules {"blob.js": "ELF\u0002\u0001\u0001"}

//- bytecode-old: a module that begins like bytecode of another engine
//: modules {"blob.js": "\u0002\u0001export default 1"}

