// The language service of TypeScript as a worker of the editor: what a place in a module means, and what its types forbid.
import ts from "typescript";

const SETTINGS = { allowJs: true, checkJs: true, strictNullChecks: true, noEmit: true, allowImportingTsExtensions: true, moduleDetection: ts.ModuleDetectionKind.Force, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, types: [] };
// Of JavaScript, members that a type does not have; names and modules that are not there are told by the check of the sandbox.
const TOLD = new Set([2339, 2551]), CHECKED = new Set([2304, 2305, 2307, 2552, 2580, 2792, 2794]);
const TYPED = " script(";
let files = new Map();

// A file as the compiler reads it: the function that a run calls stands in a call of `script`, so that its arguments have their types.
function read(name, text, called) {
  const functions = called ? ts.createSourceFile(name, text, ts.ScriptTarget.ESNext).statements : [];
  const wordOf = (each) => each.modifiers?.find((one) => one.kind === ts.SyntaxKind.DefaultKeyword);
  const found = functions.map((each) => (ts.isExportAssignment(each) ? each.expression : wordOf(each) && each))
    .find((each) => each && (ts.isArrowFunction(each) || ts.isFunctionExpression(each) || ts.isFunctionDeclaration(each)));
  if (!found) return { text, to: (at) => at, from: (at) => at };
  const start = wordOf(found)?.end ?? found.pos; // after `default`
  return {
    text: `${text.slice(0, start)}${TYPED}${text.slice(start, found.end)})${text.slice(found.end)}`,
    to: (at) => at + (at >= start ? TYPED.length : 0) + (at > found.end ? 1 : 0),
    from: (at) => at - (at >= start + TYPED.length ? TYPED.length : 0) - (at > found.end + TYPED.length ? 1 : 0),
  };
}

const library = (name) => { try { return require(`./node_modules/typescript/lib/lib.es${/^\/lib\.es(.*)\.d\.ts$/.exec(name)[1]}.d.ts`); } catch { return undefined; } };
const text = (name) => files.get(name)?.text ?? library(name);
const service = ts.createLanguageService({
  getCompilationSettings: () => SETTINGS, getCurrentDirectory: () => "/", getDefaultLibFileName: () => "/lib.es2024.d.ts",
  getScriptFileNames: () => [...files.keys()], getScriptVersion: (name) => files.get(name)?.text ?? "",
  getScriptSnapshot: (name) => (text(name) === undefined ? undefined : ts.ScriptSnapshot.fromString(text(name))),
  fileExists: (name) => text(name) !== undefined, readFile: text,
});
const words = ({ displayParts, documentation } = {}) => displayParts && { signature: ts.displayPartsToString(displayParts), doc: ts.displayPartsToString(documentation) };

const answers = {
  names: (name, at) => service.getCompletionsAtPosition(name, at, {})?.entries.filter((each) => each.kind !== "warning").map((each) => ({ label: each.name, type: each.kind, boost: -Number(each.sortText) || 0 })),
  about: (name, at) => words(service.getQuickInfoAtPosition(name, at)),
  entry: (name, at, entry) => words(service.getCompletionEntryDetails(name, at, entry, {}, undefined, {}, undefined)),
  problems: (name) => service.getSemanticDiagnostics(name).filter(({ code }) => (name.endsWith(".ts") ? !CHECKED.has(code) : TOLD.has(code)))
    .map(({ start, length, messageText }) => ({ from: files.get(name).from(start), to: files.get(name).from(start + length), severity: "warning", message: ts.flattenDiagnosticMessageText(messageText, "\n") })),
};
onmessage = ({ data: { number, ask, name, at, entry, texts, called } }) => {
  files = new Map(Object.entries(texts).map(([each, one]) => [each, files.get(each)?.given === one ? files.get(each) : { given: one, ...read(each, one, each === called) }]));
  postMessage({ number, found: answers[ask](name, files.get(name).to(at), entry) });
};
