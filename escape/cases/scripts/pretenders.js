//= pretending
// An argument that changes when it is converted, and the expected text.
//- tag: an object with the host's own tag
hide({ [Symbol.toStringTag]: 'Reply' }, { valueOf: () => ({ ok: true }) })
//+ arrives
{}
//- promise: an object that can be waited for
hide({}, { valueOf: () => 'mine', then(f) { f('mine'); } })
//+ arrives
{}
//- proxy: a proxy of an object that is worth a number
new Proxy(hide({}, { valueOf: () => 7 }), {})
//+ arrives
{}
//- class: an instance of a class named like the host's
hide(new (class Reply { ok = true; })(), { valueOf: () => 'x' })
//+ arrives
{"ok":true}
//- array: an object that looks like a list
hide({ length: 1, 0: 'x' }, { valueOf: () => ['y'] })
//+ arrives
{"0":"x","length":1}
//- error: an heir of errors that is worth a permission
hide(Object.assign(Object.create(Error.prototype), { code: 'ok' }), { valueOf: () => true })
//+ arrives
{"code":"ok"}
//- bridge: the bridge's own functions, worth a name
hide({}, { ...bridge, valueOf: () => 'hold' })
//+ arrives
{}

//= texts
// Texts that a binding, a file system or a Unicode normal form would change.
//- kelvin: the sign of Kelvin, a twin of K
'\u212a'
//- angstrom: the sign of Ångström, a twin of Å
'\u212b'
//- twins: two keys with one normal form
{ '\u212b': 1, '\u00c5': 2 }
//- circled: a figure in a circle
'\u2460'
//- kana: half-width letters
'\uff76\uff9e'
//- superscript: a raised figure
'x\u00b2'
//- fraction: a half as one letter
'\u00bd'
//- long-s: an s of old prints
'\u017f'
//- roman: a Roman numeral
'\u2167'
//- hangul: a syllable in its parts
'\u1112\u1161\u11ab'
//- arabic: a letter as it is drawn
'\ufef7'
//- digits: figures of another script
'\u0661\u0662'
//- nul-first: a NUL first
'\u0000a'
//- nul-last: a NUL last
'a\u0000'
//- nul-alone: nothing but NULs
'\u0000\u0000'
//- reversed: a pair the wrong way round
'\udc00\ud800'
//- halves: two first halves
'\ud800\ud800'
//- half-after-pair: a pair and a half
'\ud83d\ude00\ud83d'
