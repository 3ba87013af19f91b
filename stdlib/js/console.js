$.global("console", { log: (...a) => $.log(1, a.map(String).join(" ")) });
