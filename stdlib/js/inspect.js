// How a value looks in a log line.
