"""A server over HTTP that wants a login, and the authority that gives one."""

import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlparse

codes, tokens = {}, set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def give(self, status, body=None, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urlparse(self.path)
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            return self.give(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        if url.path.startswith("/.well-known/oauth-authorization-server"):
            return self.give(200, {
                "issuer": base, "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token", "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"]})
        if url.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            code = secrets.token_hex(8)
            codes[code] = asked["redirect_uri"]
            answer = urlencode({"code": code, "state": asked["state"]})
            return self.give(302, Location=f"{asked['redirect_uri']}?{answer}")
        self.give(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/register":
            asked = json.loads(body)
            return self.give(201, {**asked, "client_id": "client-1"})
        if self.path == "/token":
            asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            if codes.pop(asked.get("code"), None) is None:
                return self.give(400, {"error": "invalid_grant"})
            token = secrets.token_hex(8)
            tokens.add(token)
            return self.give(200, {"access_token": token, "token_type": "Bearer",
                                   "expires_in": 3600})
        if self.path != "/mcp":
            return self.give(404)
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in tokens:
            where = f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource"'
            return self.give(401, {"error": "who are you?"}, WWW_Authenticate=where)
        self.speak(json.loads(body))

    def speak(self, message):
        if "id" not in message:
            return self.give(202)
        method = message["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "guarded", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "peek", "description": "Looks inside.",
                                 "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": "treasure"}]}
        else:
            error = {"code": -32601, "message": "Method not found"}
            return self.give(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        self.give(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
base = f"http://127.0.0.1:{server.server_address[1]}"
print(base, flush=True)
server.serve_forever()
