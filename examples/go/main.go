// A form's whole life by gRPC: made, activated, answered, read, and its webhook checked.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	headlessformsv1 "example.com/client/gen/headlessforms/v1"
)

const secret = "a secret of sixteen"

func main() {
	target := os.Getenv("GRPC_TARGET")
	if target == "" {
		target = "localhost:8081"
	}
	connection, err := grpc.Dial(target, grpc.WithInsecure())
	must(err)
	defer connection.Close()
	forms := headlessformsv1.NewFormsServiceClient(connection)
	submissions := headlessformsv1.NewSubmissionsServiceClient(connection)
	sessions := headlessformsv1.NewSessionsServiceClient(connection)
	webhooks := headlessformsv1.NewWebhooksServiceClient(connection)

	anyone, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	owner := metadata.AppendToOutgoingContext(anyone, "authorization", "Bearer "+os.Getenv("API_KEY"))

	longest := int32(100)
	made, err := forms.CreateForm(owner, &headlessformsv1.CreateFormRequest{Definition: &headlessformsv1.FormDefinition{
		Name: "Contact",
		Slug: "contact",
		Fields: []*headlessformsv1.FormField{
			{Id: "email", Type: headlessformsv1.FormFieldType_FORM_FIELD_TYPE_EMAIL, Required: true},
			{Id: "note", Type: headlessformsv1.FormFieldType_FORM_FIELD_TYPE_TEXTAREA, MaxLength: &longest},
		},
		Delivery: &headlessformsv1.DeliveryTarget{Channel: &headlessformsv1.DeliveryTarget_Email{Email: &headlessformsv1.EmailDelivery{}}},
	}})
	must(err)
	formID := made.Form.Id
	_, err = forms.ActivateForm(anyone, &headlessformsv1.ActivateFormRequest{
		FormId: formID, ActivationToken: made.ActivationToken, Email: "owner@example.com",
	})
	must(err)
	fmt.Println("activated", formID)

	url, received := startReceiver()
	_, err = webhooks.CreateWebhook(owner, &headlessformsv1.CreateWebhookRequest{
		Url:    url,
		Events: []headlessformsv1.WebhookEvent{headlessformsv1.WebhookEvent_WEBHOOK_EVENT_SUBMISSION_CREATED},
		Secret: secret,
		FormId: formID,
	})
	must(err)

	submitted, err := submissions.CreateSubmission(anyone, &headlessformsv1.CreateSubmissionRequest{
		FormId: formID, Answers: answers(map[string]interface{}{"email": "ada@example.com"}),
	})
	must(err)
	fmt.Println("submitted", submitted.SubmissionId)
	_, err = submissions.CreateSubmission(anyone, &headlessformsv1.CreateSubmissionRequest{
		FormId: formID, Answers: answers(map[string]interface{}{"email": "ada", "phone": "1"}),
	})
	for _, detail := range status.Convert(err).Details() {
		if failure, ok := detail.(*headlessformsv1.Failure); ok {
			for _, violation := range failure.Violations {
				fmt.Printf("refused %s: %s\n", violation.Path, violation.Code)
			}
		}
	}

	page, err := submissions.ListSubmissions(owner, &headlessformsv1.ListSubmissionsRequest{FormId: formID})
	must(err)
	for _, submission := range page.Submissions {
		fmt.Println("listed", submission.Answers.AsMap())
	}

	opened, err := sessions.CreateSession(owner, &headlessformsv1.CreateSessionRequest{
		Subject: &headlessformsv1.CreateSessionRequest_FormId{FormId: formID},
	})
	must(err)
	ended, err := sessions.SubmitSession(owner, &headlessformsv1.SubmitSessionRequest{
		SessionId: opened.Session.Id, Answers: answers(map[string]interface{}{"email": "bob@example.com"}),
	})
	must(err)
	fmt.Println("session", ended.Session.Status)

	export, err := submissions.ExportSubmissions(owner, &headlessformsv1.ExportSubmissionsRequest{
		FormId: formID, Format: headlessformsv1.ExportFormat_EXPORT_FORMAT_NDJSON,
	})
	must(err)
	var file bytes.Buffer
	for {
		piece, err := export.Recv()
		if err == io.EOF {
			break
		}
		must(err)
		file.Write(piece.Data)
	}
	fmt.Println("exported", bytes.Count(file.Bytes(), []byte("\n")), "lines")

	select {
	case hit := <-received:
		if isSigned(hit.signature, hit.body) {
			fmt.Println("webhook signature valid")
		} else {
			fmt.Println("webhook signature INVALID")
		}
	case <-time.After(30 * time.Second):
		log.Fatal("no webhook came")
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func answers(values map[string]interface{}) *structpb.Struct {
	message, err := structpb.NewStruct(values)
	must(err)
	return message
}

type hit struct {
	signature string
	body      []byte
}

func startReceiver() (string, <-chan hit) {
	received := make(chan hit, 10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go http.Serve(listener, http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		received <- hit{request.Header.Get("X-Service-Signature"), body}
		response.WriteHeader(http.StatusNoContent)
	}))
	return "http://" + listener.Addr().String() + "/", received
}

// `t=<seconds>, v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`. A real receiver also refuses old times.
func isSigned(header string, body []byte) bool {
	parts := strings.SplitN(strings.TrimPrefix(header, "t="), ", v1=", 2)
	if len(parts) != 2 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "."))
	mac.Write(body)
	given, err := hex.DecodeString(parts[1])
	return err == nil && hmac.Equal(mac.Sum(nil), given)
}
