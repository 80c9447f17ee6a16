// Hello World on Node's own http module, without a framework.
'use strict';

const http = require('node:http');
const { parseArgs } = require('node:util');

const HELLO = 'Hello World\n';
const HELLO_HEADERS = { 'Content-Type': 'text/plain', 'Content-Length': HELLO.length };
const IDLE_TIMEOUT_MS = 60 * 1000;
const HEAD_TIMEOUT_MS = 30 * 1000; // Node looks every 30 s, so it may take twice as long
const LINGER_MS = 2 * 1000;

// uri-host [":" port] of RFC 3986, 3.2.2, or nothing at all, as RFC 9110, 7.2 allows.
const HOST = /^(?:\[[\w.~!$&'()*+,;=:-]+\](?::\d*)?|(?:[\w.~!$&'()*+,;=-]|%[\dA-Fa-f]{2})+(?::\d*)?)?$/;
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const ABSOLUTE_ROOT = /^https?:\/\/[^/?]+\/?(?:\?|$)/i;

// Sockets that have had their last answer: the parser may still trip over what follows it.
const refused = new WeakSet();

// What Node lets pass and RFC 9112 does not: two Host lines or an invalid Host (3.2), codings other
// than chunked and any in HTTP/1.0 (6.1), and other major versions (2.3). req.headers keeps one of
// several Host lines; req.rawHeaders has them all.
function hostIsValid(req) {
  const lines = req.rawHeaders;
  let count = 0;
  for (let i = 0; i < lines.length; i += 2) {
    if (lines[i].length !== 4 || lines[i].toLowerCase() !== 'host') continue;
    if (++count > 1 || !HOST.test(lines[i + 1])) return false;
  }
  return count === 1 || req.httpVersionMinor === 0;
}

function codingIsValid(req) {
  const coding = req.headers['transfer-encoding'];
  return coding === undefined ||
    (req.httpVersionMinor > 0 && coding.toLowerCase() === 'chunked');
}

function isRoot(target) {
  return target === '/' || target.startsWith('/?') || ABSOLUTE_ROOT.test(target);
}

function reply(res, status, headers = {}) {
  const body = `${http.STATUS_CODES[status]}\n`;
  res.writeHead(status, {
    'Content-Type': 'text/plain', 'Content-Length': body.length, ...headers,
  });
  res.end(body);
}

function replyLast(req, res, status) {
  refused.add(req.socket);
  reply(res, status, { Connection: 'close' });
}

function answer(req, res) {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    reply(res, 405, { Allow: 'GET, HEAD' });
  } else if (req.url.includes('#')) {
    replyLast(req, res, 400);
  } else if (!isRoot(req.url)) {
    reply(res, 404);
  } else {
    res.writeHead(200, HELLO_HEADERS);
    res.end(HELLO);
  }
}

function hasBody(req) {
  return req.headers['content-length'] !== undefined ||
    req.headers['transfer-encoding'] !== undefined;
}

function onRequest(req, res) {
  // Node goes by "keep-alive" in HTTP/1.0 even where "close" stands beside it.
  if (CLOSE.test(req.headers.connection)) res.shouldKeepAlive = false;
  if (req.httpVersionMajor !== 1) {
    replyLast(req, res, 505);
  } else if (!hostIsValid(req) || !codingIsValid(req)) {
    replyLast(req, res, 400);
  } else if (hasBody(req)) {
    req.on('end', () => answer(req, res));
    req.resume();
  } else {
    answer(req, res);
  }
}

// Ends our side and reads on for a while: a close with input unread resets the connection, and
// the client may lose the answer (RFC 9112, 9.6).
function end(socket, status, body, headers, isHead) {
  if (socket.writableEnded || refused.has(socket)) return;
  refused.add(socket);
  socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n` +
    `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n` +
    `Date: ${new Date().toUTCString()}\r\n${headers}Connection: close\r\n\r\n` +
    (isHead ? '' : body));
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function refuse(socket, status, headers = '', isHead = false) {
  end(socket, status, `${http.STATUS_CODES[status]}\n`, headers, isHead);
}

const REFUSALS = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

function onClientError(err, socket) {
  // Bytes after a request that asked to close: its answer is on the way, and the last.
  if (err.code === 'HPE_CLOSED_CONNECTION') return;
  if (err.code === 'ECONNRESET' || err.code === 'HPE_INVALID_EOF_STATE' || socket.destroyed) {
    socket.destroy();
  } else {
    refuse(socket, REFUSALS[err.code] ?? 400);
  }
}

function onConnect(req, socket) {
  socket.on('error', () => socket.destroy());
  socket.resume();
  refuse(socket, 405, 'Allow: GET, HEAD\r\n');
}

// No other protocol is offered, so an upgrade is ignored (RFC 9110, 7.8). Without a listener Node
// would do that too, but lose the requests that came behind it: this answer is the last instead.
function onUpgrade(req, socket) {
  const isHead = req.method === 'HEAD';
  socket.on('error', () => socket.destroy());
  socket.resume();
  if (!hostIsValid(req) || !codingIsValid(req)) {
    refuse(socket, 400, '', isHead);
  } else if (hasBody(req)) {
    refuse(socket, 501, '', isHead);
  } else if (req.method !== 'GET' && !isHead) {
    refuse(socket, 405, 'Allow: GET, HEAD\r\n');
  } else if (isRoot(req.url)) {
    end(socket, 200, HELLO, '', isHead);
  } else {
    refuse(socket, req.url.includes('#') ? 400 : 404, '', isHead);
  }
}

function fail(message) {
  console.error(`server.js: ${message}\nusage: node server.js --port N | --version`);
  process.exit(2);
}

function readOptions() {
  try {
    return parseArgs({ options: { port: { type: 'string' }, version: { type: 'boolean' } } }).values;
  } catch (err) {
    return fail(err.message);
  }
}

function serve(port) {
  // The check for a missing Host is done with the others, in hostIsValid.
  const options = {
    keepAliveTimeout: IDLE_TIMEOUT_MS, headersTimeout: HEAD_TIMEOUT_MS, requireHostHeader: false,
  };
  const server = http.createServer(options, onRequest);
  server.on('connect', onConnect);
  server.on('upgrade', onUpgrade);
  server.on('clientError', onClientError);
  server.on('error', (err) => {
    if (server.listening) return; // an accept that failed; libuv has backed off already
    console.error(`cannot listen on 127.0.0.1:${port}: ${err.message}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
  server.listen({ host: '127.0.0.1', port, backlog: 65535 });
}

const args = readOptions();
if (args.version) {
  console.log(`Node.js ${process.version}, llhttp ${process.versions.llhttp}`);
} else if (!/^\d{1,5}$/.test(args.port ?? '') || args.port < 1 || args.port > 65535) {
  fail('--port takes a number from 1 to 65535');
} else {
  serve(Number(args.port));
}
