// fetch: requests to granted hosts (fetch:HOST). They are sent immediately, not when the run has succeeded.

type HeadersInit = Headers | Iterable<[string, string]> | Record<string, string>;
type BodyInit = string | URLSearchParams | FormData | Blob | ArrayBuffer | ArrayBufferView | ReadableStream<Uint8Array>;

declare class Headers implements Iterable<[string, string]> {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, name: string, all: Headers) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface RequestInit {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" | string;
  headers?: HeadersInit;
  /** At most 512 KiB are sent. A stream is read to its end before the request is sent. */
  body?: BodyInit | null;
  /** Needed when the body is a stream. */
  duplex?: "half";
  /** At most five redirects are followed; credentials are not sent to another origin. */
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
  /** Accepted without effect, as there are no cookies, no cache and no origin. */
  cache?: "default" | "no-store" | "reload" | "no-cache" | "force-cache";
  credentials?: "omit" | "same-origin" | "include";
  mode?: "cors" | "no-cors" | "same-origin";
  keepalive?: boolean;
  priority?: "high" | "low" | "auto";
  referrer?: string;
  referrerPolicy?: string;
  /** Only the empty text. */
  integrity?: "";
}

interface Body {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  formData(): Promise<FormData>;
}

declare class Request implements Body {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: "follow" | "error" | "manual";
  readonly signal: AbortSignal | null;
  readonly cache: string;
  readonly credentials: string;
  readonly mode: string;
  readonly keepalive: boolean;
  readonly referrerPolicy: string;
  readonly integrity: string;
  readonly duplex: "half";
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  formData(): Promise<FormData>;
  clone(): Request;
}

declare class Response implements Body {
  constructor(body?: BodyInit | null, init?: { status?: number; statusText?: string; headers?: HeadersInit });
  static json(data: unknown, init?: { status?: number; statusText?: string; headers?: HeadersInit }): Response;
  /** A response with status 0 and type `error`. */
  static error(): Response;
  static redirect(url: string | URL, status?: 301 | 302 | 303 | 307 | 308): Response;
  readonly status: number;
  readonly statusText: string;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  readonly headers: Headers;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: "basic" | "default" | "error";
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  formData(): Promise<FormData>;
  clone(): Response;
}

/**
 * Sends a request. Failures are errors with a `code`: `fetch_refused` (host or address not allowed), `fetch_failed`, `fetch_timeout`,
 * `response_too_large`, `bad_header`, `budget_exceeded`. A run that is repeated after a conflict gets the responses of the previous run.
 */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
