//= D59 bound_values
//: script "try { return await bridge.call(ATTACK); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"nothing_foreign": true}
//: story "No text of a tenant becomes part of a statement: names come from a list, values are bound."
//- value: a value that ends its quotes
'db.find', { set: 'orders', filter: { state: "x' OR '1'='1" } }
//- value-comment: a value that comments the rest away
'db.find', { set: 'orders', filter: { state: "x' OR 1=1 --" } }
//- value-union: a value that asks a second question
'db.find', { set: 'orders', filter: { state: "x' UNION SELECT id, note, note, note, note, note FROM orders --" } }
//- id: an id that ends its quotes
'db.get', { set: 'orders', id: "0' OR '1'='1" }
//- field: a field's name that is a condition
'db.find', { set: 'orders', filter: { '1=1 OR 1=1 OR id': 1 } }
//- operator: an operator that is a condition
'db.find', { set: 'orders', filter: { id: { '> 0 OR id >': 0 } } }
//- operator-raw: an operator of the database's own
'db.find', { set: 'orders', filter: { note: { 'IS NOT NULL OR note <>': 'x' } } }
//- set: a set's name that is a statement
'db.find', { set: 'lodger_kv WHERE 1=1 --', filter: {} }
//- set-schema: the catalogue of the database
'db.find', { set: 'sqlite_master WHERE 1=1 UNION ALL SELECT note, note, note, note, note FROM orders --', filter: {} }
//- group: a group that asks a second question
'db.aggregate', { set: 'orders', filter: {}, groupBy: ['state UNION SELECT 1, note, 1, 1, 1, 1 FROM orders'] }
//- count: a count that counts everybody's
'db.find', { set: 'orders', filter: { 'org_id LIKE \'%\' OR 1=1 OR total': 1 } }

//= D60 bound_values
//: script "try { return await bridge.call(ATTACK); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"nothing_foreign": true}
//: story "No text of a tenant becomes part of a statement: names come from a list, values are bound."
//- path: a path that ends its quotes
'db.find', { set: 'things', filter: { '1=1 OR 1=1 OR body': 1 } }
//- path-value: a value that ends its quotes
'db.find', { set: 'things', filter: { id: "x' OR 1=1 --" } }

//= D61 bound_values
//: script "try { return await bridge.call('db.find', { set: 'orders', filter: { note: { contains: 'ATTACK' } } }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"matches_nothing": true}
//: story "Search text is matched literally."
// Patterns that are plain text here, which no row contains.
//- percent: a wildcard for any text
%
//- underscore: a wildcard for one character
_ine
//- long: many wildcards for any text
%%%%%%%%%%%%%%%%%%%%%%
