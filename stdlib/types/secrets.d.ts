// secrets: placeholders of secrets for headers of requests. The engine replaces them by the values when it sends the request.

interface Secrets {
  /** `Basic …` for an authorization header, from a user name and a secret. */
  basic(user: string, name: string): string;
  /** The value itself; only with the grant `secret:NAME:plain`. It is masked in logs, results and errors where it is recognised. */
  read(name: string): Promise<string>;
  /** `fetch(url, { headers: { authorization: "Bearer " + secrets.API_KEY } })` */
  readonly [name: string]: any;
}

declare const secrets: Secrets;
