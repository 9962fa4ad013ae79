import json, os, sys, urllib.request

# python3 plain.py: asks at the first run, and resumes at the next. The session's id is in a file.
file = sys.argv[1] if len(sys.argv) > 1 else "plain.json"

def call(method, path, body=None, headers={}):
    headers = {"authorization": f"Bearer {os.environ['KEY']}", "content-type": "application/json", **headers}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["URL"] + path, data, headers, method=method)
    return json.load(urllib.request.urlopen(request))

if not os.path.exists(file):
    fields = [{"label": "May I deploy 4.2?", "id": "yes", "type": "boolean", "required": True}]
    question = {"definition": {"fields": fields}, "allow_decline": True, "expires_in": 86400}
    session = call("POST", "/v1/sessions", question, {"idempotency-key": f"plain {file}"})["session"]
    json.dump(session["id"], open(file, "w"))
    sys.exit(print(session["url"]))

ended = {"session": {"outcome": None}}
while ended["session"]["outcome"] is None:
    ended = call("GET", f"/v1/sessions/{json.load(open(file))}?wait=30")
outcome = ended["session"]["outcome"]
approved = outcome == "submitted" and ended["submission"]["answers"]["yes"]
print("deployed 4.2" if approved else f"not deployed: {outcome}")
