/* Definitions as text, for tests of what a write makes of them. */
#ifndef CRD_TEXT_H
#define CRD_TEXT_H

#define ANYTHING                                                                                             \
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":"     \
	"true}}"
#define FIELDS                                                                                               \
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"           \
	"\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"                                           \
	"\"b\":{\"type\":\"string\"}}}}}}"
#define CRD(versions)                                                                                        \
	"{\"metadata\":{\"name\":\"widgets.example.com\",\"uid\":\"u1\",\"generation\":3},\"spec\":{"        \
	"\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{"                                     \
	"\"plural\":\"widgets\",\"singular\":\"widget\",\"kind\":\"Widget\",\"listKind\":\"WidgetList\","    \
	"\"shortNames\":[\"wd\"]},\"versions\":[" versions "]}}"
#define TWO                                                                                                  \
	"{\"name\":\"v1beta1\",\"served\":true,\"storage\":false,\"deprecated\":true," FIELDS                \
	",\"selectableFields\":[{\"jsonPath\":\".spec.a\"}]},{\"name\":\"v1\",\"served\":true,"              \
	"\"storage\":true," FIELDS ",\"selectableFields\":[{\"jsonPath\":\".spec.a\"},{\"jsonPath\":\"."     \
	"spec.b\"}],\"additionalPrinterColumns\":[{\"name\":\"A\","                                          \
	"\"type\":\"integer\",\"jsonPath\":\".spec.a\",\"priority\":1}],\"subresources\":{\"status\":{},"    \
	"\"scale\":{\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":"                                \
	"\".status.r\"}}},{\"name\":\"v2\",\"served\":false,\"storage\":false," ANYTHING "}"

#endif
