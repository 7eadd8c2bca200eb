import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Map;
import java.util.TreeMap;

/** Java's HTTP client as it is: offers HTTP/2 with each plain-text request. Prints how often it got each status. */
class Offers {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest get = HttpRequest.newBuilder(URI.create(args[0] + "/genid")).build();
        HttpRequest post = HttpRequest.newBuilder(URI.create(args[0] + "/v1/ids:make"))
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\"time\":1,\"seq\":0}"))
                .build();
        Map<Integer, Integer> statuses = new TreeMap<>();
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            for (HttpRequest request : new HttpRequest[] {get, post}) {
                statuses.merge(client.send(request, BodyHandlers.ofString()).statusCode(), 1, Integer::sum);
            }
        }
        System.out.println(statuses);
    }
}
