// Hello World on Node's own http module, without a framework.
'use strict';

const http = require('node:http');
const { parseArgs } = require('node:util');

const HELLO = 'Hello World\n';
const HELLO_HEADERS = { 'Content-Type': 'text/plain', 'Content-Length': HELLO.length };
const IDLE_TIMEOUT_MS = 60 * 1000;
const LINGER_MS = 2 * 1000;

// uri-host [":" port] of RFC 3986, 3.2.2, or nothing at all, as RFC 9110, 7.2 allows.
const HOST = /^(?:\[[\w.~!$&'()*+,;=:-]+\](?::\d*)?|(?:[\w.~!$&'()*+,;=-]|%[\dA-Fa-f]{2})+(?::\d*)?)?$/;
const ABSOLUTE_ROOT = /^https?:\/\/[^/?]+\/?(?:\?|$)/i;

// Node joins or drops repeated lines in req.headers, and lets any Host value pass; RFC 9112, 3.2
// wants 400 for two Host lines and for an invalid one.
function hostIsValid(req) {
  const lines = req.rawHeaders;
  let count = 0;
  for (let i = 0; i < lines.length; i += 2) {
    if (lines[i].length !== 4 || lines[i].toLowerCase() !== 'host') continue;
    if (++count > 1 || !HOST.test(lines[i + 1])) return false;
  }
  return count === 1 || req.httpVersionMinor === 0;
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

function answer(req, res) {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    reply(res, 405, { Allow: 'GET, HEAD' });
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
  if (!hostIsValid(req)) {
    reply(res, 400, { Connection: 'close' });
  } else if (hasBody(req)) {
    req.on('end', () => answer(req, res));
    req.resume();
  } else {
    answer(req, res);
  }
}

// Ends our side and reads on for a while: a close with input unread resets the connection, and
// the client may lose the answer (RFC 9112, 9.6).
function refuse(socket, status, headers = '') {
  if (socket.writableEnded) return;
  const body = `${http.STATUS_CODES[status]}\n`;
  socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n` +
    `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n` +
    `Date: ${new Date().toUTCString()}\r\n${headers}Connection: close\r\n\r\n${body}`);
  socket.setTimeout(LINGER_MS, () => socket.destroy());
}

const REFUSALS = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

function onClientError(err, socket) {
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
  const server = http.createServer({ keepAliveTimeout: IDLE_TIMEOUT_MS }, onRequest);
  server.on('connect', onConnect);
  server.on('clientError', onClientError);
  server.on('error', (err) => {
    if (server.listening) return; // an accept that failed; libuv has backed off already
    console.error(`cannot listen on 127.0.0.1:${port}: ${err.message}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
  server.listen({ host: '127.0.0.1', port, backlog: 65535 });
}

const options = readOptions();
if (options.version) {
  console.log(`Node.js ${process.version}, llhttp ${process.versions.llhttp}`);
} else if (!/^\d{1,5}$/.test(options.port ?? '') || options.port < 1 || options.port > 65535) {
  fail('--port takes a number from 1 to 65535');
} else {
  serve(Number(options.port));
}
