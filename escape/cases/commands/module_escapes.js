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
