// Questions to the server. What it answers is returned; what went wrong is thrown as one of two errors.

const PATIENCE = 20_000;

// The server said no. `passing` is true where the same request may succeed a little later.
export class Refused extends Error {
  constructor(status, code, message, retryAfter) {
    super(message);
    Object.assign(this, { status, code, retryAfter, passing: status === 429 || status >= 500 });
  }
}

// No answer came: no connection, or none in time.
export class Unreachable extends Error {
  passing = true;
}

let csrf = "";

export async function readState() {
  const state = await request("/api/state", { method: "GET" });
  csrf = state.csrf;
  return state;
}

export async function post(path, body = {}) {
  try {
    return await send(path, body);
  } catch (error) {
    // The token may be older than the session, after joining once more in another tab.
    if (error.status !== 403) throw error;
    await readState();
    return send(path, body);
  }
}

function send(path, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  return request(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function request(path, options) {
  let response, content;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE) });
    content = await response.json();
  } catch {
    if (response && !response.ok) throw new Refused(response.status, "", response.statusText, 0);
    throw new Unreachable("no answer");
  }
  if (response.ok) return content;
  const seconds = Number(response.headers.get("Retry-After")) || 0;
  throw new Refused(response.status, content.error ?? "", content.message ?? "", seconds * 1000);
}
