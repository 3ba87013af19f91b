//= D58 tenant_predicate
//: mark "-orders"
//: says "{}, asked of orders"
//: script "try { return await bridge.call('db.find', { set: 'orders', filter: ATTACK, limit: 100 }); } catch (e) { return { code: e.code ?? e.name }; }"
//: put {"NUMBER": "total", "TEXT": "note"}
//: seen {"nothing_foreign": true}
//: story "A filter can only restrict the rows of the tenant."
//: again [{"mark": "-things", "says": "{}, asked of things", "script": "try { return await bridge.call('db.find', { set: 'things', filter: ATTACK, limit: 100 }); } catch (e) { return { code: e.code ?? e.name }; }", "put": {"NUMBER": "rank", "TEXT": "text"}}]
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

//= C55 budgets
//: story "Budgets are counted by the host, one call after the other."
//- queries: ten thousand questions
//: seen {"spends": [100]}
for (let i = 0; i < 150; i++) await bridge.call('db.count', { set: 'orders', filter: {} }); return 1;
//- queries-at-once: a hundred and fifty questions at once
//: seen {"spends": [100]}
await Promise.all(Array.from({ length: 150 }, () => bridge.call('db.count', { set: 'orders', filter: {} }))); return 1;
//- catching: going on after the budget
//: seen {"spends": [100]}
let n = 0; for (let i = 0; i < 150; i++) { try { await bridge.call('kv.get', { key: 'k' + i }); n++; } catch {} } return n;
//- writes: two thousand writes
//: seen {"spends": [1000]}
for (let i = 0; i < 1500; i++) { try { await bridge.call('kv.set', { key: 'k' + i, value: 1 }); } catch {} } return 1;

//= D57-get tenant_predicate
//: says "the other's {} by its id"
//: script "try { return await bridge.call('db.get', { set: ATTACK }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"nothing_foreign": true}
//: story "An id of another tenant is treated as unknown."
//- row
'orders', id: 2
//- row-odd
'orders', id: 4.0
//- document
'things', id: 'victim-1'

//= D57 tenant_predicate
//: says "{} of the other's row"
//: script "try { return await bridge.call(ATTACK); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"unchanged": true}
//: story "An id of another tenant is treated as unknown."
//- update
'db.update', { set: 'orders', id: 2, changes: { state: 'mine' }}
//- increment
'db.increment', { set: 'orders', id: 2, amounts: { total: 5 }}
//- delete
'db.delete', { set: 'orders', id: 2, }

//= D67 tenant_predicate
//: script "try { ATTACK; } catch { return null; }"
//: seen {"own_rows": true}
//: story "Counts, sums and groups include the tenant's rows only."
//- count: counting by db.count: count
const found = await bridge.call('db.count', { set: 'orders', filter: {} }); return found
//- count-not: counting by db.count: count-not
const found = await bridge.call('db.count', { set: 'orders', filter: { not: { id: { lt: 0 } } } }); return found
//- documents: counting by db.count: documents
const found = await bridge.call('db.count', { set: 'things', filter: {} }); return found
//- groups: counting by db.aggregate: groups
const found = await bridge.call('db.aggregate', { set: 'orders', filter: {}, groupBy: ['state'] }); return found[0].count
//- sum: counting by db.aggregate: sum
const found = await bridge.call('db.aggregate', { set: 'orders', filter: {}, max: ['total'] }); return found[0].count

//= D63 tenant_keys
//: script "try { return await bridge.call('kv.get', { key: ATTACK }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"nothing_foreign": true}
//: story "Keys belong to the tenant, whatever characters they contain."
//- same: a key that both have
'shared'
//- foreign: a key of the other's
'key-1'
//- colon: the other's name before the key
'victim:key-1'
//- slash: a path to the other's
'../victim/key-1'
//- nul: a NUL between
'victim\u0000key-1'
//- scope: the scope before the key
'/key-1'

//= D64 grants
//: says "{} that was not granted"
//: script "try { return await bridge.call(ATTACK); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"refused": true}
//: story "Columns that are not exposed are refused in every position."
//- secret: secrets.read of a secret
'secrets.read', { name: 'api' }
//- secret-foreign: secrets.read of a secret of foreign
'secrets.read', { name: 'victim_api' }

//= D62 grants
//: says "{} that was not granted"
//: script "try { return await bridge.call(ATTACK); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"refused": true}
//: story "Columns that are not exposed are refused in every position."
//- column: db.find of a column
'db.find', { set: 'orders', filter: { margin: { contains: 'canary' } } }
//- column-order: db.find of a column of order
'db.find', { set: 'orders', order: [{ margin: 'asc' }] }
//- column-sum: db.aggregate of a column of sum
'db.aggregate', { set: 'orders', filter: {}, groupBy: ['margin'] }
//- column-write: db.insert of a column of write
'db.insert', { set: 'orders', values: { state: 'x', total: 1, note: 'y', margin: 'mine' } }
