# What examples/ruby does not show by gRPC, such as gzip, deadlines, uploads and retries; everything by Connect as JSON.

$LOAD_PATH.unshift File.join(__dir__, '../../../examples/ruby/gen')

require 'json'
require 'net/http'
require 'zlib'
require 'headlessforms/v1/submissions_services_pb'
require 'headlessforms/v1/uploads_services_pb'

include HeadlessForms::V1

FORM_ID, LARGE_FORM_ID, UPLOAD_ID = ENV.values_at('FORM_ID', 'LARGE_FORM_ID', 'UPLOAD_ID')
AUTHORIZATION = "Bearer #{ENV.fetch('API_KEY')}".freeze
NOTE = 'x' * 20_000
PIECES = ['x' * 100_000] * 20
DEADLINE_S = 0.4
WATCH_MS = 3000
# As docs/rpc.md has it for all services.
RETRIES = {
  methodConfig: [{
    name: [{ service: 'headlessforms.v1.SubmissionsService' }],
    retryPolicy: {
      maxAttempts: 4, initialBackoff: '0.2s', maxBackoff: '5s', backoffMultiplier: 2,
      retryableStatusCodes: ['UNAVAILABLE']
    }
  }]
}.freeze

def check_grpc
  key = { 'authorization' => AUTHORIZATION }
  target = ENV.fetch('GRPC_TARGET')
  gzip = GRPC::Core::CompressionOptions.new(default_algorithm: :gzip).to_channel_arg_hash
  compressing = SubmissionsService::Stub.new(target, :this_channel_is_insecure, channel_args: gzip)
  submissions = SubmissionsService::Stub.new(target, :this_channel_is_insecure)
  uploads = UploadsService::Stub.new(target, :this_channel_is_insecure)

  answers = Google::Protobuf::Struct.new(
    fields: { 'email' => 'ada@example.com', 'note' => NOTE }
      .transform_values { |text| Google::Protobuf::Value.new(string_value: text) }
  )
  made = compressing.create_submission(CreateSubmissionRequest.new(form_id: FORM_ID, answers: answers))
  read = submissions.get_submission(
    GetSubmissionRequest.new(submission_id: made.submission_id), metadata: key
  )
  puts "grpc gzip #{read.submission.answers.fields['note'].string_value.length}"

  begin
    watch = WatchSubmissionsRequest.new(form_id: LARGE_FORM_ID)
    submissions.watch_submissions(watch, metadata: key, deadline: Time.now + DEADLINE_S).each {}
  rescue GRPC::DeadlineExceeded
    puts 'grpc deadline DEADLINE_EXCEEDED'
  end

  count = 0
  token = ''
  loop do
    request = ListSubmissionsRequest.new(form_id: LARGE_FORM_ID, page_size: 100, page_token: token)
    page = submissions.list_submissions(request, metadata: key)
    count += page.submissions.length
    token = page.next_page_token
    break if token.empty?
  end
  puts "grpc listed #{count}"

  export = ExportSubmissionsRequest.new(form_id: LARGE_FORM_ID, format: :EXPORT_FORMAT_NDJSON)
  puts "grpc exported #{submissions.export_submissions(export, metadata: key).map(&:data).join.lines.length}"

  parts = PIECES.map { |piece| UploadFileRequest.new(form_id: LARGE_FORM_ID, field_id: 'cv', content: piece) }
  puts "grpc uploaded #{uploads.upload_file(parts, metadata: key).upload.size}"
  download = uploads.get_upload(GetUploadRequest.new(upload_id: UPLOAD_ID), metadata: key)
  puts "grpc downloaded #{download.sum { |piece| piece.content.bytesize }}"

  lossy = SubmissionsService::Stub.new(
    ENV.fetch('LOSSY_GRPC_TARGET'), :this_channel_is_insecure,
    channel_args: { 'grpc.service_config' => JSON.generate(RETRIES) }
  )
  mark = 'ruby by grpc'
  answers = Google::Protobuf::Struct.new(
    fields: { 'email' => 'ada@example.com', 'note' => mark }
      .transform_values { |text| Google::Protobuf::Value.new(string_value: text) }
  )
  lossy.create_submission(
    CreateSubmissionRequest.new(form_id: FORM_ID, answers: answers, idempotency_key: mark)
  )
  puts 'grpc retried'
  filters = [AnswerFilter.new(field_id: 'note', eq: mark)]
  search = ListSubmissionsRequest.new(form_id: FORM_ID, filters: filters, include_total: true)
  puts "grpc filtered #{submissions.list_submissions(search, metadata: key).total_size}"

  made = submissions.create_stream_token(CreateStreamTokenRequest.new(form_id: FORM_ID), metadata: key)
  watch = WatchSubmissionsRequest.new(form_id: FORM_ID)
  submissions.watch_submissions(watch, metadata: { 'authorization' => "Bearer #{made.token}" }).first
  puts 'grpc watched by token'
end

def check_connect
  field = { id: 'email', type: 'FORM_FIELD_TYPE_EMAIL', required: true }
  definition = { name: 'Contact', slug: 'contact', fields: [field], delivery: { email: {} } }
  _, made = call('FormsService/CreateForm', { definition: definition })
  form_id = made['form']['id']
  activation = { formId: form_id, activationToken: made['activationToken'], email: 'owner@example.com' }
  puts "connect activated #{call('FormsService/ActivateForm', activation)[0]}"

  good = { formId: form_id, answers: { email: 'ada@example.com' } }
  puts "connect submitted #{call('SubmissionsService/CreateSubmission', good)[0]}"
  bad = { formId: form_id, answers: { email: 'ada', phone: '1' } }
  status, error = call('SubmissionsService/CreateSubmission', bad)
  failure_in(error)['violations'].each do |violation|
    puts "connect refused #{status} #{error['code']} #{violation['path']} #{violation['code']}"
  end
  _, page = call('SubmissionsService/ListSubmissions', { formId: form_id })
  puts "connect answers #{page['submissions'].map { |each| each['answers']['email'] }.join(' ')}"
  _, opened = call('SessionsService/CreateSession', { formId: form_id })
  answers = { sessionId: opened['session']['id'], answers: { email: 'bob@example.com' } }
  puts "connect session #{call('SessionsService/SubmitSession', answers)[1]['session']['status']}"

  long = { formId: FORM_ID, answers: { email: 'ada@example.com', note: NOTE } }
  _, made = call('SubmissionsService/CreateSubmission', long, compressed: true)
  _, read = call('SubmissionsService/GetSubmission', { submissionId: made['submissionId'] })
  puts "connect gzip #{read['submission']['answers']['note'].length}"

  timeout = { 'connect-timeout-ms' => (DEADLINE_S * 1000).to_i.to_s }
  _, finish = stream('SubmissionsService/WatchSubmissions', [{ formId: LARGE_FORM_ID }], timeout)
  puts "connect deadline #{finish['error']['code']}"

  count = 0
  token = ''
  loop do
    listing = { formId: LARGE_FORM_ID, pageSize: 100, pageToken: token }
    _, page = call('SubmissionsService/ListSubmissions', listing)
    count += page['submissions'].length
    token = page.fetch('nextPageToken', '')
    break if token.empty?
  end
  puts "connect listed #{count}"

  export = [{ formId: LARGE_FORM_ID, format: 'EXPORT_FORMAT_NDJSON' }]
  pieces, = stream('SubmissionsService/ExportSubmissions', export)
  puts "connect exported #{pieces.map { |piece| piece['data'].unpack1('m') }.join.lines.length}"

  parts = PIECES.map { |piece| { formId: LARGE_FORM_ID, fieldId: 'cv', content: [piece].pack('m0') } }
  (stored,), = stream('UploadsService/UploadFile', parts)
  puts "connect uploaded #{stored['upload']['size']}"
  pieces, = stream('UploadsService/GetUpload', [{ uploadId: UPLOAD_ID }])
  puts "connect downloaded #{pieces.sum { |piece| piece.fetch('content', '').unpack1('m').bytesize }}"

  mark = 'ruby by connect'
  answers = { email: 'ada@example.com', note: mark }
  submit = { formId: FORM_ID, answers: answers, idempotencyKey: mark }
  begin
    call('SubmissionsService/CreateSubmission', submit, target: ENV.fetch('LOSSY_HTTP_TARGET'))
  rescue EOFError, Errno::ECONNRESET
    retry
  end
  puts 'connect retried'
  search = { formId: FORM_ID, filters: [{ fieldId: 'note', eq: mark }], includeTotal: true }
  puts "connect filtered #{call('SubmissionsService/ListSubmissions', search)[1]['totalSize']}"

  _, made = call('SubmissionsService/CreateStreamToken', { formId: FORM_ID })
  bearer = { 'authorization' => "Bearer #{made['token']}", 'connect-timeout-ms' => WATCH_MS.to_s }
  loop do
    # On a busy machine nothing may come in time.
    began, = stream('SubmissionsService/WatchSubmissions', [{ formId: FORM_ID }], bearer)
    break unless began.empty?
  end
  puts 'connect watched by token'
end

# A unary call: its status and its JSON, which is the reply or the error.
def call(method, message, compressed: false, target: ENV.fetch('HTTP_TARGET'))
  body = JSON.generate(message)
  encoding = compressed ? { 'content-encoding' => 'gzip' } : {}
  # Net::HTTP accepts gzip, and reads it.
  response = post(method, 'application/json', compressed ? Zlib.gzip(body) : body, encoding, target)
  [response.code, JSON.parse(response.body)]
end

# A streaming call: the messages of the reply, and its end, which holds the error if there is one. Each message
# comes after a byte of flags (1: compressed, 2: the end) and its length in 4 bytes.
def stream(method, messages, headers = {})
  sent = messages.map { |message| Zlib.gzip(JSON.generate(message)) }
  body = sent.map { |message| [1, message.bytesize].pack('CN') + message }.join
  encodings = { 'connect-content-encoding' => 'gzip', 'connect-accept-encoding' => 'gzip' }
  reply = post(method, 'application/connect+json', body, encodings.merge(headers)).body.b
  received = []
  at = 0
  loop do
    flags, size = reply.byteslice(at, 5).unpack('CN')
    data = reply.byteslice(at + 5, size)
    message = JSON.parse(flags.anybits?(1) ? Zlib.gunzip(data) : data)
    return [received, message] if flags.anybits?(2)

    received << message
    at += 5 + size
  end
end

def post(method, type, body, headers, target = ENV.fetch('HTTP_TARGET'))
  fixed = { 'authorization' => AUTHORIZATION, 'content-type' => type, 'connect-protocol-version' => '1' }
  uri = URI("http://#{target}/headlessforms.v1.#{method}")
  Net::HTTP.post(uri, body, fixed.merge(headers))
end

# The typed detail of a refused call, which Connect repeats in JSON.
def failure_in(error)
  error['details'].find { |detail| detail['type'] == 'headlessforms.v1.Failure' }['debug']
end

check_grpc
check_connect
