// Reads and sends typed answers: the message of a version, by ProtoJSON, beside the JSON of the calls.
import { pathToFileURL } from 'node:url';

const gen = (path) => import(pathToFileURL(`${process.cwd()}/gen/${path}`).href);
const { create, fromBinary, fromJson, toBinary, toJson } = await import('@bufbuild/protobuf');
const { createClient } = await import('@connectrpc/connect');
const { createGrpcTransport } = await import('@connectrpc/connect-node');
const { SubmissionsService } = await gen('headlessforms/v1/submissions_pb.js');
const { EveryTypeAnswersSchema: schema, EveryTypeAnswers_FileSchema: fileSchema } = await gen(
  'answers/headlessforms/generated/every_type/every_type_answers_pb.js',
);

const { API_KEY, FORM_ID, GRPC_TARGET, NEWER, NEWER_JSON, SUBMISSION_ID, UPLOAD_IDS } = process.env;
const submissions = createClient(
  SubmissionsService,
  createGrpcTransport({ baseUrl: `http://${GRPC_TARGET}` }),
);
const owner = { headers: { authorization: `Bearer ${API_KEY}` } };

const { submission } = await submissions.getSubmission({ submissionId: SUBMISSION_ID }, owner);
const answers = fromJson(schema, submission.answers);
console.log('read', JSON.stringify(toJson(schema, answers)));
console.log('whole', answers.whole, answers.rating, answers.scale, answers.firstName);

const [file, files] = UPLOAD_IDS.split(',').map((uploadId) => create(fileSchema, { uploadId }));
const sent = toJson(schema, { ...answers, file, files: [files] });
const { submissionId } = await submissions.createSubmission({ formId: FORM_ID, answers: sent }, owner);
console.log('sent', submissionId);

const newer = fromBinary(schema, Buffer.from(NEWER, 'hex'));
console.log('kept', Buffer.from(toBinary(schema, newer)).toString('hex'));
try {
  fromJson(schema, JSON.parse(NEWER_JSON));
  console.log('taken');
} catch {
  console.log('refused');
}
const ignoring = fromJson(schema, JSON.parse(NEWER_JSON), { ignoreUnknownFields: true });
console.log('ignored', JSON.stringify(toJson(schema, ignoring)));
