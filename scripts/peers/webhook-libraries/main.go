// Reads {"secret", "headers", "body"} from standard input and says whether Standard Webhooks' own library for Go accepts it.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	var given struct {
		Secret  string
		Headers map[string]string
		Body    string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	headers := http.Header{}
	for name, value := range given.Headers {
		headers.Set(name, value)
	}
	webhook, err := standardwebhooks.NewWebhook(given.Secret)
	if err == nil {
		err = webhook.Verify([]byte(given.Body), headers)
	}
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
	fmt.Println("accepted")
}
