//= refused
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

//= caught
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

//= shared
//- try
try {
  const found = await import(NAME);
  const names = Object.getOwnPropertyNames(found).filter((n) => n !== 'default');
  return names.length === 0 && (found.default === undefined || typeof found.default === 'function' && String(found.default).includes('own main')) ? 'refused' : names;
} catch { return 'refused'; }
/* own main */
