# Reads and sends typed answers: the message of a version, by ProtoJSON, beside the Struct of the calls.
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path.cwd() / "gen"), str(Path.cwd() / "gen/answers")]

import grpc
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from headlessforms.generated.every_type.every_type_answers_pb2 import EveryTypeAnswers
from headlessforms.v1 import submissions_pb2 as v1, submissions_pb2_grpc

env = os.environ
key = (("authorization", f"Bearer {env['API_KEY']}"),)
submissions = submissions_pb2_grpc.SubmissionsServiceStub(grpc.insecure_channel(env["GRPC_TARGET"]))

stored = submissions.GetSubmission(v1.GetSubmissionRequest(submission_id=env["SUBMISSION_ID"]), metadata=key)
answers = json_format.Parse(json_format.MessageToJson(stored.submission.answers), EveryTypeAnswers())
print("read", json_format.MessageToJson(answers, indent=None))
print("whole", answers.whole, answers.rating, answers.scale, answers.first_name)

file, files = env["UPLOAD_IDS"].split(",")
answers.file.CopyFrom(EveryTypeAnswers.File(upload_id=file))
del answers.files[:]
answers.files.add(upload_id=files)
request = v1.CreateSubmissionRequest(form_id=env["FORM_ID"])
json_format.Parse(json_format.MessageToJson(answers), request.answers)
print("sent", submissions.CreateSubmission(request, metadata=key).submission_id)

newer = EveryTypeAnswers.FromString(bytes.fromhex(env["NEWER"]))
print("kept", newer.SerializeToString().hex())
try:
    json_format.Parse(env["NEWER_JSON"], EveryTypeAnswers())
    print("taken")
except json_format.ParseError:
    print("refused")
ignoring = json_format.Parse(env["NEWER_JSON"], EveryTypeAnswers(), ignore_unknown_fields=True)
print("ignored", json_format.MessageToJson(ignoring, indent=None))
