// Class 112: mails that contain several mails, or imitate another sender.

//= F112 mail_checks
//: script "try { return await bridge.call('mail.send', { to: ['kim@example.com'], subject: 'hello', text: 'hi', ATTACK }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"refused": true}
//: story "A mail is checked completely at the call: one-line subject and names, one address each, bounded sizes."
// What differs from a plain mail.
//- subject-line: a second line in the subject
subject: 'hello\nBcc: all@example.com'
//- subject-return: a carriage return in the subject
subject: 'hello\rBcc: all@example.com'
//- subject-separator: a line separator in the subject
subject: 'hello\u2028Bcc: all@example.com'
//- subject-nul: a NUL in the subject
subject: 'hello\u0000'
//- subject-long: a subject of a hundred thousand characters
subject: 'x'.repeat(100000)
//- to-line: a second line in an address
to: ['kim@example.com\nBcc: all@example.com']
//- to-comma: two addresses in one
to: ['kim@example.com, eve@example.com']
//- to-name: a second line in the name beside an address
to: ['"Kim\nBcc: all@example.com" <kim@example.com>']
//- to-name-bare: a carriage return in a name without quotes
to: ['Kim\rEve <kim@example.com>']
//- to-name-escaped: a line end behind a backslash in a name
to: ['"Kim\\\nBcc: x" <kim@example.com>']
//- to-name-separator: a line separator in a name
to: ['Kim\u2028Eve <kim@example.com>']
//- to-name-encoded: a line end in a name, as an encoded word
to: ['=?utf-8?q?Kim=0aBcc:_x?= <kim@example.com>']
//- to-name-quote: a quote that ends the name early
to: ['"Kim", eve@evil.example, " <kim@example.com>']
//- to-name-comma: a second address instead of a name
to: ['eve@evil.example, Kim <kim@example.com>']
//- to-name-twice: two addresses beside a name
to: ['Kim <kim@example.com> <eve@evil.example>']
//- to-name-inside: a second line in the address beside a name
to: ['Kim <kim@example.com\nBcc: all@example.com>']
//- to-name-long: a name of ten thousand characters
to: [`${'x'.repeat(10000)} <kim@example.com>`]
//- cc-name: a second line in the name of a copy
cc: ['"Kim\nBcc: all@example.com" <kim@example.com>']
//- reply-name: a second line in the name for answers
replyTo: '"Kim\nBcc: all@example.com" <kim@example.com>'
//- to-quoted: a quoted address
to: ['"kim eve"@example.com']
//- to-percent: an address that is passed on
to: ['kim%evil.example@example.com@example.com']
//- to-path: a route before an address
to: ['@evil.example:kim@example.com']
//- to-bare: no domain
to: ['root']
//- to-space: a space in an address
to: ['kim @example.com']
//- to-wide: a domain with characters of another script
to: ['kim@ex\u0430mple.com']
//- to-many: ten thousand recipients
to: Array.from({ length: 10000 }, (x, i) => `a${i}@example.com`)
//- to-nobody: no recipient
to: []
//- to-object: an address that is no text
to: [{ toString: 'x' }]
//- reply: a second line in the address for answers
replyTo: 'kim@example.com\nBcc: all@example.com'
//- from: a sender of its own
from: 'boss@example.com'
//- headers: headers of its own
headers: { Bcc: 'all@example.com' }
//- attachment: a file of the host
attachments: [{ path: '/etc/passwd' }]
//- body: a body of nearly a million characters
text: 'x'.repeat(900000)
//- nothing: no body
text: null
