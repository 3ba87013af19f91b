// Hosts that some parser reads as the loopback address.

//= F97 closed_addresses
//: script "try { return await bridge.call('http.fetch', { id: 1, method: 'GET', url: 'http://ATTACK:' + action.input + '/', headers: [] }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"never_visited": true}
//: story "A request is allowed by its address, which is parsed once."
//: limits {"wall_ms": 5000, "cpu_ms": 500}
//: context "{\"action\":{\"id\":\"escape\",\"input\":CANARY_PORT}}"
//- loopback: the loopback address
127.0.0.1
//- any: the address of every interface
0.0.0.0
//- name: localhost
localhost
//- name-capitals: localhost in capitals
LOCALHOST

//= F98 closed_addresses
//: script "try { return await bridge.call('http.fetch', { id: 1, method: 'GET', url: 'http://ATTACK:' + action.input + '/', headers: [] }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"never_visited": true}
//: story "A request is allowed by its address, which is parsed once."
//: limits {"wall_ms": 5000, "cpu_ms": 500}
//: context "{\"action\":{\"id\":\"escape\",\"input\":CANARY_PORT}}"
//- short: the loopback address in two parts
127.1
//- decimal: the loopback address as one number
2130706433
//- octal: the loopback address in eights
0177.0.0.1
//- hexadecimal: the loopback address in sixteens
0x7f.0.0.1
//- hexadecimal-whole: the loopback address as one number in sixteens
0x7f000001
//- zero: nothing but a nought
0
//- mixed: the loopback address in mixed numbers
0x7f.1

//= F99 closed_addresses
//: script "try { return await bridge.call('http.fetch', { id: 1, method: 'GET', url: 'http://ATTACK:' + action.input + '/', headers: [] }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"never_visited": true}
//: story "A request is allowed by its address, which is parsed once."
//: limits {"wall_ms": 5000, "cpu_ms": 500}
//: context "{\"action\":{\"id\":\"escape\",\"input\":CANARY_PORT}}"
//- mapped: the loopback address inside one of IPv6
[::ffff:127.0.0.1]
//- mapped-hexadecimal: the same in sixteens
[::ffff:7f00:1]

//= F104 one_reading
//: script "try { return await bridge.call('http.fetch', { id: 1, method: 'GET', url: 'http://ATTACK:' + action.input + '/', headers: [] }); } catch (e) { return { code: e.code ?? e.name }; }"
//: seen {"never_visited": true}
//: story "A request is allowed by its address, which is parsed once."
//: limits {"wall_ms": 5000, "cpu_ms": 500}
//: context "{\"action\":{\"id\":\"escape\",\"input\":CANARY_PORT}}"
//- user: an address behind a user's name
example.com@127.0.0.1
//- password: an address behind a user's name and password
example.com:443@127.0.0.1
