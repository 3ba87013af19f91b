//= A10 flat_text
//: script "const hide = (object, members) => { for (const name in members) Object.defineProperty(object, name, { value: members[name] }); return object; }; await bridge.call('nothing', ATTACK); return null;"
//: story "Only an object's JSON text is passed, not its own claims about its type."
// An argument that changes when it is converted, and the expected text.
//- tag: an object with the host's own tag
//: seen {"host_saw": [["nothing", "{}"]]}
hide({ [Symbol.toStringTag]: 'Reply' }, { valueOf: () => ({ ok: true }) })
//- promise: an object that can be waited for
//: seen {"host_saw": [["nothing", "{}"]]}
hide({}, { valueOf: () => 'mine', then(f) { f('mine'); } })
//- proxy: a proxy of an object that is worth a number
//: seen {"host_saw": [["nothing", "{}"]]}
new Proxy(hide({}, { valueOf: () => 7 }), {})
//- class: an instance of a class named like the host's
//: seen {"host_saw": [["nothing", "{\"ok\":true}"]]}
hide(new (class Reply { ok = true; })(), { valueOf: () => 'x' })
//- array: an object that looks like a list
//: seen {"host_saw": [["nothing", "{\"0\":\"x\",\"length\":1}"]]}
hide({ length: 1, 0: 'x' }, { valueOf: () => ['y'] })
//- error: an heir of errors that is worth a permission
//: seen {"host_saw": [["nothing", "{\"code\":\"ok\"}"]]}
hide(Object.assign(Object.create(Error.prototype), { code: 'ok' }), { valueOf: () => true })
//- bridge: the bridge's own functions, worth a name
//: seen {"host_saw": [["nothing", "{}"]]}
hide({}, { ...bridge, valueOf: () => 'hold' })

//= C43 strict_json
//: says "{}, there and back"
//: script "const given = ATTACK; const back = await bridge.call('echo', given); return JSON.stringify(back) === JSON.stringify(given);"
//: seen {"answers": [true]}
//: story "A text is passed unchanged: not normalised, not cut at NUL, lone surrogates not joined."
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

//= C49 strict_json
//: says "a format that would show {}"
//: script "const given = ATTACK; const back = await bridge.call('echo', given); return JSON.stringify(back) === JSON.stringify(given);"
//: seen {"answers": [true]}
//: story "A tenant's text is never used as a format string."
//- attribute: an attribute of the host's
"{0._private}"
//- shown: the host's own object
"{0!r}"
//- facts: what the host knows
"{0.facts}"
//- limits: what the host was told
"{0._limits.cpu_ms}"
//- percent: four of an older kind
"%s%r%a%d"
