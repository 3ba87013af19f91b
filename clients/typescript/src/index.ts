// Client of Lodger's HTTP API: every route with its types, problems as errors, pages and live streams.
import type { components, paths } from "./api.js";

export type { components, operations, paths } from "./api.js";
export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

const ROOT = "/api/v1";
type Root = typeof ROOT;
type Method = "get" | "post" | "put" | "patch" | "delete";
type Verb<M extends Method, P extends string> = `${Root}${P}` extends keyof paths ? paths[`${Root}${P}`][M] : never;

/** Paths below /api/v1 that have a method. */
export type PathWith<M extends Method> = {
  [P in keyof paths]: P extends `${Root}${infer Rest}` ? (paths[P][M] extends object ? Rest : never) : never;
}[keyof paths];

type Params<V> = V extends { parameters: infer X } ? X : never;
type Part<X, K extends string> = X extends Record<K, infer R> ? Record<K, R> : X extends { [k in K]?: infer R } ? { [k in K]?: R } : unknown;
type Content<C> = C extends { "application/json": infer J } ? J : Uint8Array | Blob;
type Body<V> = V extends { requestBody?: never }
  ? unknown
  : V extends { requestBody: { content: infer C } }
    ? { body: Content<C> }
    : V extends { requestBody?: { content: infer C } }
      ? { body?: Content<C> }
      : unknown;
type Extra = {
  /** The change is carried out once, however often it is sent with this key. */
  idempotencyKey?: string;
  /** ETag of the state that is changed. */
  ifMatch?: string;
  /** Reason of the change, for the audit log. */
  why?: string;
  actingAs?: string;
  signal?: AbortSignal;
};

/** What a route is called with. */
export type Options<V> = Part<Params<V>, "path"> & Part<Params<V>, "query"> & Body<V> & Extra;
type Rest<V> = object extends Options<V> ? [options?: Options<V>] : [options: Options<V>];
type Of<A> = A extends { content: infer C }
  ? C extends { "application/json": infer J }
    ? J
    : C extends { "application/gzip": unknown } | { "application/wasm": unknown }
      ? Uint8Array
      : string
  : undefined;

/** What a route answers. */
export type Answer<V> = V extends { responses: infer R } ? Of<R[keyof R & (200 | 201 | 202 | 204)]> : never;
type Entry<V> = Answer<V> extends { items: (infer T)[] } ? T : never;

/** An event of a live stream: an action as it is now, or a line of its log. */
export type LiveEvent =
  | { event: "action"; id: string; data: Schemas["Action"] }
  | { event: "log"; id: string; data: Schemas["LogLine"] & Record<string, unknown> };

/** A refused request: a stable code, what happened, why, and how to fix it. */
export class LodgerError extends Error {
  override readonly name = "LodgerError";
  readonly code: string;
  readonly status: number;

  constructor(readonly problem: Problem, /** Seconds to wait before the next attempt. */ readonly retryAfter?: number) {
    super([problem.detail, problem.why, problem.fix].filter(Boolean).join("; "));
    this.code = problem.code;
    this.status = problem.status;
  }
}

type Loose = Extra & { path?: Record<string, unknown>; query?: Record<string, unknown>; body?: unknown; lastEventId?: string };

/** A name as one segment of a path. A URL reads "." and ".." as other paths, which may be other operations. */
function segment(what: string, name: unknown): string {
  const text = String(name ?? "");
  if (["", ".", ".."].includes(text)) throw new RangeError(`${what}: "${text}" is not a name`);
  return encodeURIComponent(text);
}

export class Lodger {
  /**
   * @param url of the server, such as http://localhost:8750
   * @param token from lodger token create
   */
  constructor(readonly url: string, private readonly token: string, private readonly fetcher: typeof fetch = (...given) => fetch(...given)) {}

  get<P extends PathWith<"get">>(path: P, ...rest: Rest<Verb<"get", P>>): Promise<Answer<Verb<"get", P>>> {
    return this.call("get", path, rest[0]);
  }

  post<P extends PathWith<"post">>(path: P, ...rest: Rest<Verb<"post", P>>): Promise<Answer<Verb<"post", P>>> {
    return this.call("post", path, rest[0]);
  }

  put<P extends PathWith<"put">>(path: P, ...rest: Rest<Verb<"put", P>>): Promise<Answer<Verb<"put", P>>> {
    return this.call("put", path, rest[0]);
  }

  patch<P extends PathWith<"patch">>(path: P, ...rest: Rest<Verb<"patch", P>>): Promise<Answer<Verb<"patch", P>>> {
    return this.call("patch", path, rest[0]);
  }

  delete<P extends PathWith<"delete">>(path: P, ...rest: Rest<Verb<"delete", P>>): Promise<Answer<Verb<"delete", P>>> {
    return this.call("delete", path, rest[0]);
  }

  /** Every entry of a list, page by page. */
  async *all<P extends PathWith<"get">>(path: P, ...rest: Rest<Verb<"get", P>>): AsyncGenerator<Entry<Verb<"get", P>>> {
    const options = rest[0] as Loose | undefined;
    let cursor: string | null = null;
    do {
      const page: { items: Entry<Verb<"get", P>>[]; next: string | null } = await this.call("get", path, {
        ...options, query: { ...options?.query, ...(cursor ? { cursor } : {}) },
      });
      yield* page.items;
      cursor = page.next;
    } while (cursor);
  }

  /**
   * The changes of a tenant's actions, or of one action with its log until it is over. A stream that breaks is continued
   * after the last event, so that none is missed or repeated; it ends with the action, with the loop, or with the signal.
   */
  async *live(tenantId: string, options: { action?: string; signal?: AbortSignal; waitMs?: number } = {}): AsyncGenerator<LiveEvent> {
    const path = options.action ? "/tenants/{tenant_id}/actions/{action_id}/live" : "/tenants/{tenant_id}/live";
    const first = options.waitMs ?? 500;
    let lastEventId: string | undefined, wait = first;
    while (!options.signal?.aborted) {
      try {
        const answer = await this.send("get", path, { path: { tenant_id: tenantId, action_id: options.action }, signal: options.signal, lastEventId });
        if (answer.status === 204 || !answer.body) return;
        for await (const { event, id, data } of events(answer.body)) {
          lastEventId = id || lastEventId;
          wait = first;
          if (data) yield { event, id, data: JSON.parse(data) } as LiveEvent;
        }
      } catch (error) {
        if (options.signal?.aborted) return;
        if (error instanceof LodgerError && error.status < 500 && error.status !== 429) throw error;
        if (!(error instanceof LodgerError || error instanceof TypeError)) throw error;
        wait = error instanceof LodgerError && error.retryAfter ? error.retryAfter * 1000 : Math.min(wait * 2, 30_000);
      }
      await new Promise<void>((resolve) => {
        const go = () => { clearTimeout(timer); options.signal?.removeEventListener("abort", go); resolve(); };
        const timer = setTimeout(go, wait);
        options.signal?.addEventListener("abort", go);
      });
    }
  }

  // The types are checked where the methods above are called.
  private async call(method: Method, path: string, options?: Loose): Promise<any> {
    const answer = await this.send(method, path, options);
    const media = answer.headers.get("content-type") ?? "";
    if (answer.status === 204) return undefined;
    if (media.startsWith("application/json")) return answer.json();
    return media.startsWith("text/") || media.includes("ndjson") ? answer.text() : new Uint8Array(await answer.arrayBuffer());
  }

  private async send(method: Method, path: string, options: Loose = {}): Promise<Response> {
    const { body, idempotencyKey, ifMatch, why, actingAs, lastEventId } = options;
    const raw = body instanceof Uint8Array || (typeof Blob !== "undefined" && body instanceof Blob);
    const headers = { authorization: `Bearer ${this.token}` } as Record<string, string>;
    if (body !== undefined) headers["content-type"] = raw ? (path.endsWith("/module") ? "application/wasm" : "application/gzip") : "application/json";
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    if (ifMatch) headers["if-match"] = ifMatch;
    if (why) headers["lodger-why"] = encodeURIComponent(why);
    if (actingAs) headers["lodger-acting-as"] = encodeURIComponent(actingAs);
    if (lastEventId) headers["last-event-id"] = lastEventId;
    const target = new URL(this.url.replace(/\/$/, "") + ROOT + path.replace(/\{(\w+)\}/g, (_, name) => segment(name, options.path?.[name])));
    for (const [name, value] of Object.entries(options.query ?? {})) {
      for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined && each !== null) target.searchParams.append(name, String(each));
    }
    const sent = body === undefined ? undefined : raw ? (body as BodyInit) : JSON.stringify(body);
    const answer = await this.fetcher(target, { method: method.toUpperCase(), headers, body: sent, signal: options.signal });
    if (answer.ok) return answer;
    const text = await answer.text();
    let problem: Problem = { type: "about:blank", title: answer.statusText, status: answer.status, code: "http_error", detail: text.slice(0, 500) };
    try { problem = JSON.parse(text) ?? problem; } catch { /* not from Lodger, but from a proxy before it */ }
    throw new LodgerError(problem, Number(answer.headers.get("retry-after")) || undefined);
  }
}

/** The events of a stream; a comment with an id is one without data. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<{ event: string; id: string; data: string }> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const found = { event: "message", id: "", data: "" };
        for (const line of part.split("\n")) {
          const [, name, text = ""] = /^(event|id|data): ?(.*)$/.exec(line) ?? [];
          if (name) found[name as keyof typeof found] = name === "data" && found.data ? `${found.data}\n${text}` : text;
        }
        yield found;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
