//= E74-name file_names
//: made "name"
//: seen {"refused": true}
//: story "A file of a script has a name that no tool takes for its own, wherever it is written later."
//- git: settings of git, which names programs
".git/config"
//- git-inside: settings of git in a folder
"lib/.git/hooks/post-checkout.js"
//- git-capitals: settings of git in capitals
".GIT/config.json"
//- editor: tasks of an editor
".vscode/tasks.json"
//- npmrc: settings of npm
".npmrc"
//- package: a package's scripts
"package.json"
//- modules: a package that others import
"node_modules/x/index.js"
//- modules-capitals: the same in capitals
"Node_Modules/x/index.js"
//- up: a file above the folder
"../main.js"
//- absolute: a file of the host
"/etc/cron.d/x.js"
//- backslash: a path of another system
"..\\main.js"
//- shell: a program
"Makefile"
//- line: a name of two lines
"a\nb.js"

//= H123 marked_lines
//: made "line"
//: seen {"on_its_line": true}
//: story "A text of a script is one event: it begins no line of its own and turns no line of a terminal."
//- line: a line that looks like another run's
"x\n09:00:00 acme/report ok"
//- return: a carriage return, over the line's beginning
"x\rok"
//- escape: a terminal's sequence
"\u001b[2J\u001b]0;x\u0007"
//- direction: text that runs backwards
"\u202eko"
//- separator: a separator of lines
"x\u2028ok"
//- next-line: a line end of another standard
"x\u0085ok"
//- feed: a form feed and a vertical tab
"x\u000bok\fok"

//= E74-node limited_node
//: made "node"
//: seen {"nothing_done": true}
//: story "Limited Node.js answers and does nothing else once it has started."
// JavaScript that is true if the attack succeeds.
//- read: a file is read
fs.readFileSync("/etc/passwd").length > 0
//- attributes: a file's attributes are read
fs.statSync("/etc/passwd").size > 0
//- folder: a folder is listed
fs.readdirSync("/").length > 0

//= E75-node limited_node
//: made "node"
//: seen {"nothing_done": true}
//: story "Limited Node.js answers and does nothing else once it has started."
//- program: a program is started
child.spawnSync("/bin/true").status === 0

//= E78-node limited_node
//: made "node"
//: seen {"nothing_done": true}
//: story "Limited Node.js answers and does nothing else once it has started."
//- signal: a process is looked for by a signal
process.kill(process.pid, 0)

//= E90-node limited_node
//: made "node"
//: seen {"nothing_done": true}
//: story "Limited Node.js answers and does nothing else once it has started."
//- priority: its priority is changed
(os.setPriority(1), true)
