;;= C46-owned one_verdict
;;: made "twice"
;;: expect ["ok"]
;;: story "A compromised engine sends two answers: only the first counts, and the process ends with it."
;;: runtimes ["quickjs"]
;;- call-after-answer: the engine, taken over, answers and then calls
;;: seen {"ends_as": ["ok"], "host_saw": []}
d 0 1
;;+ then
a 1 nothing "late"
;;- error-after-answer: the engine, taken over, answers and then claims to have failed
;;: seen {"ends_as": ["ok"]}
d 0 1
;;+ then
e 0 script_error {"name":"x","message":"y"}
