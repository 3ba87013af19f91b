//= questions
// Calls for another tenant's rows.
//- all: everything
{}
//- org: its tenant column, by name
{ org_id: 'victim' }
//- tenant: a tenant column, by another name
{ tenant_id: 'victim' }
//- or: a condition or anything at all
{ or: [{ state: 'open' }, {}] }
//- or-org: its own rows or the other's, by its tenant column
{ or: [{ org_id: 'escape' }, { org_id: 'victim' }] }
//- not: nothing, denied
{ not: { NUMBER: { lt: 0 } } }
//- not-not: denial upon denial
{ not: { not: { not: { NUMBER: { lt: 0 } } } } }
//- and-not: all that is not its own
{ and: [{}, { not: { TEXT: { startsWith: 'mine' } } }] }
//- mongo: operators of another language
{ $or: [{}, { $where: '1 == 1' }] }
//- contains: a text that the other's rows hold
{ TEXT: { contains: 'canary' } }
//- in: a list of numbers
{ NUMBER: { in: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } }
//- null: a column that is never missing, missing
{ or: [{ TEXT: null }, { TEXT: { ne: null } }] }
//- range: all texts there are
{ TEXT: { gte: '' } }
//- wide: a hundred alternatives
{ or: Array.from({ length: 95 }, (x, i) => ({ NUMBER: i })) }
//- prototype: conditions by way of a prototype
JSON.parse('{"__proto__":{"org_id":"victim"},"state":"open"}')

//= floods
//- queries: ten thousand questions
for (let i = 0; i < 150; i++) await bridge.call('db.count', { set: 'orders', filter: {} }); return 1;
//+ maximum
100
//- queries-at-once: a hundred and fifty questions at once
await Promise.all(Array.from({ length: 150 }, () => bridge.call('db.count', { set: 'orders', filter: {} }))); return 1;
//+ maximum
100
//- catching: going on after the budget
let n = 0; for (let i = 0; i < 150; i++) { try { await bridge.call('kv.get', { key: 'k' + i }); n++; } catch {} } return n;
//+ maximum
100
//- writes: two thousand writes
for (let i = 0; i < 1500; i++) { try { await bridge.call('kv.set', { key: 'k' + i, value: 1 }); } catch {} } return 1;
//+ maximum
1000
