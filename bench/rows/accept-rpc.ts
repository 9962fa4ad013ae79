import { create, toBinary } from '@bufbuild/protobuf';
import { CreateSubmissionRequestSchema } from '../../gen/headlessforms/v1/submissions_pb.js';
import type { Row } from '../support/bench.ts';
import { requestBytes } from '../support/connection.ts';
import { contactAnswers } from '../support/form.ts';
import { hammerGrpc } from '../support/grpc.ts';
import { sampled, takeTurns } from '../support/rounds.ts';
import { acceptingService, acceptLimit, reportLost } from './accept.ts';

const METHOD = '/headlessforms.v1.SubmissionsService/CreateSubmission';

export const acceptRpc: Row = {
  name: 'accept-rpc',
  what: 'CreateSubmission by Connect over HTTP/1.1 and by gRPC over HTTP/2, beside the limit of accept',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const { service, formId } = await acceptingService(bench, { DATABASE_URL: databaseUrl });
    const message = create(CreateSubmissionRequestSchema, {
      formId,
      source: 'bench',
      answers: contactAnswers,
    });
    const bytes = Buffer.from(toBinary(CreateSubmissionRequestSchema, message));
    const connect = requestBytes({
      method: 'POST',
      path: METHOD,
      headers: { 'content-type': 'application/proto', 'connect-protocol-version': '1' },
      body: bytes,
    });
    const turns = await takeTurns(bench.rounds, {
      connect: bench.hammered(service, { request: () => connect, expect: 200 }),
      grpc: (turn) =>
        sampled(service, () =>
          hammerGrpc({
            port: service.grpcPort,
            method: METHOD,
            message: bytes,
            seconds: bench.seconds(turn),
          }),
        ),
      limit: await acceptLimit(bench),
    });

    report.sample('service, Connect', turns.typical('connect'));
    report.sample('service, gRPC', turns.typical('grpc'));
    report.sample('limit', turns.typical('limit'));
    report.atLeast('Connect, rate to the limit', turns.ratio('connect', 'limit'), 0.5);
    report.atLeast('gRPC, rate to the limit', turns.ratio('grpc', 'limit'), 0.5);
    await reportLost(report, databaseUrl, turns.answered('connect') + turns.answered('grpc'));
  },
};
