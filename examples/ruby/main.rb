# A form's whole life by gRPC: made, activated, answered, read, and its webhook checked.

$LOAD_PATH.unshift File.join(__dir__, 'gen')

require 'openssl'
require 'socket'
require 'google/protobuf/well_known_types'
require 'headlessforms/v1/forms_services_pb'
require 'headlessforms/v1/sessions_services_pb'
require 'headlessforms/v1/submissions_services_pb'
require 'headlessforms/v1/webhooks_services_pb'

include HeadlessForms::V1

SECRET = 'a secret of sixteen'
KEY = { 'authorization' => "Bearer #{ENV.fetch('API_KEY')}" }.freeze

def main
  target = ENV.fetch('GRPC_TARGET', 'localhost:8081')
  forms = FormsService::Stub.new(target, :this_channel_is_insecure)
  submissions = SubmissionsService::Stub.new(target, :this_channel_is_insecure)
  sessions = SessionsService::Stub.new(target, :this_channel_is_insecure)
  webhooks = WebhooksService::Stub.new(target, :this_channel_is_insecure)

  definition = FormDefinition.new(
    name: 'Contact',
    slug: 'contact',
    fields: [
      FormField.new(id: 'email', type: :FORM_FIELD_TYPE_EMAIL, required: true),
      FormField.new(id: 'note', type: :FORM_FIELD_TYPE_TEXTAREA, max_length: 100)
    ],
    delivery: DeliveryTarget.new(email: EmailDelivery.new)
  )
  made = forms.create_form(CreateFormRequest.new(definition: definition), metadata: KEY)
  form_id = made.form.id
  forms.activate_form(
    ActivateFormRequest.new(form_id: form_id, activation_token: made.activation_token, email: 'owner@example.com')
  )
  puts "activated #{form_id}"

  receiver = TCPServer.new('127.0.0.1', 0)
  webhooks.create_webhook(
    CreateWebhookRequest.new(
      url: "http://127.0.0.1:#{receiver.addr[1]}/",
      events: [:WEBHOOK_EVENT_SUBMISSION_CREATED],
      secret: SECRET,
      form_id: form_id
    ),
    metadata: KEY
  )

  submitted = submissions.create_submission(
    CreateSubmissionRequest.new(form_id: form_id, answers: struct('email' => 'ada@example.com'))
  )
  puts "submitted #{submitted.submission_id}"
  begin
    submissions.create_submission(
      CreateSubmissionRequest.new(form_id: form_id, answers: struct('email' => 'ada', 'phone' => '1'))
    )
  rescue GRPC::InvalidArgument => e
    failure_of(e).violations.each { |violation| puts "refused #{violation.path}: #{violation.code}" }
  end

  page = submissions.list_submissions(ListSubmissionsRequest.new(form_id: form_id), metadata: KEY)
  puts "listed #{page.submissions.map { |each| each.answers.to_h }}"

  opened = sessions.create_session(CreateSessionRequest.new(form_id: form_id), metadata: KEY)
  ended = sessions.submit_session(
    SubmitSessionRequest.new(session_id: opened.session.id, answers: struct('email' => 'bob@example.com')),
    metadata: KEY
  )
  puts "session #{ended.session.status}"

  request = ExportSubmissionsRequest.new(form_id: form_id, format: :EXPORT_FORMAT_NDJSON)
  export = submissions.export_submissions(request, metadata: KEY)
  puts "exported #{export.map(&:data).join.lines.length} lines"

  header, body = receive(receiver)
  puts "webhook signature #{signed?(header, body) ? 'valid' : 'INVALID'}"
end

def struct(answers)
  Google::Protobuf::Struct.new(
    fields: answers.transform_values { |text| Google::Protobuf::Value.new(string_value: text) }
  )
end

# The typed detail of a refused call.
def failure_of(error)
  detail = error.to_rpc_status.details.find { |any| any.is(Failure) }
  detail ? detail.unpack(Failure) : Failure.new
end

# The first request to a socket: its signature and its body.
def receive(server)
  socket = server.accept
  headers = {}
  socket.gets
  while (line = socket.gets.chomp) != ''
    name, value = line.split(': ', 2)
    headers[name.downcase] = value
  end
  body = socket.read(headers['content-length'].to_i)
  socket.write("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
  socket.close
  [headers['x-service-signature'], body]
end

# `t=<seconds>, v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`. A real receiver also refuses old times.
def signed?(header, body)
  parts = header.split(', ').to_h { |part| part.split('=', 2) }
  mac = OpenSSL::HMAC.hexdigest('SHA256', SECRET, "#{parts['t']}.#{body}")
  OpenSSL.fixed_length_secure_compare(mac, parts['v1'])
end

main
