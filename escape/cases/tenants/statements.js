//= injections
// Arguments of calls, each with the class of the attack before its name.
//- 59-value: a value that ends its quotes
{ set: 'orders', filter: { state: "x' OR '1'='1" } }
//+ call
db.find
//- 59-value-comment: a value that comments the rest away
{ set: 'orders', filter: { state: "x' OR 1=1 --" } }
//+ call
db.find
//- 59-value-union: a value that asks a second question
{ set: 'orders', filter: { state: "x' UNION SELECT id, note, note, note, note, note FROM orders --" } }
//+ call
db.find
//- 59-id: an id that ends its quotes
{ set: 'orders', id: "0' OR '1'='1" }
//+ call
db.get
//- 59-field: a field's name that is a condition
{ set: 'orders', filter: { '1=1 OR 1=1 OR id': 1 } }
//+ call
db.find
//- 59-operator: an operator that is a condition
{ set: 'orders', filter: { id: { '> 0 OR id >': 0 } } }
//+ call
db.find
//- 59-operator-raw: an operator of the database's own
{ set: 'orders', filter: { note: { 'IS NOT NULL OR note <>': 'x' } } }
//+ call
db.find
//- 59-set: a set's name that is a statement
{ set: 'lodger_kv WHERE 1=1 --', filter: {} }
//+ call
db.find
//- 59-set-schema: the catalogue of the database
{ set: 'sqlite_master WHERE 1=1 UNION ALL SELECT note, note, note, note, note FROM orders --', filter: {} }
//+ call
db.find
//- 59-group: a group that asks a second question
{ set: 'orders', filter: {}, groupBy: ['state UNION SELECT 1, note, 1, 1, 1, 1 FROM orders'] }
//+ call
db.aggregate
//- 59-count: a count that counts everybody's
{ set: 'orders', filter: { 'org_id LIKE \'%\' OR 1=1 OR total': 1 } }
//+ call
db.find
//- 60-path: a path that ends its quotes
{ set: 'things', filter: { '1=1 OR 1=1 OR body': 1 } }
//+ call
db.find
//- 60-path-value: a value that ends its quotes
{ set: 'things', filter: { id: "x' OR 1=1 --" } }
//+ call
db.find
