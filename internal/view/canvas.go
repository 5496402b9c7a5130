package view

import (
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// CanvasName is what people call a canvas.
type CanvasName struct {
	Canvas eventqueue.CanvasID `json:"canvas_id"`
	Name   string              `json:"name,omitempty"`
}

// CanvasNameOf is the name of a canvas.
func CanvasNameOf(n operate.CanvasName) CanvasName { return CanvasName(n) }

// CanvasNames is a part of the list of named canvases.
type CanvasNames struct {
	Items []CanvasName `json:"items"`
	// Next is the name after which the list goes on; absent at the end.
	Next string `json:"next,omitempty"`
}

// CanvasNamesOf makes a page of the list, which may go on if there are as many as were asked for.
func CanvasNamesOf(found []operate.CanvasName, limit int) CanvasNames {
	list := CanvasNames{Items: All(found, CanvasNameOf)}
	if len(found) == limit {
		list.Next = found[limit-1].Name
	}
	return list
}
